"""What each command imports: nothing that it does not use."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import howsure as hs

HEAVY = {"pyarrow", "pandas", "polars", "torch", "sklearn", "matplotlib", "dask", "fsspec", "jinja2", "onnx"}
# Some releases of SciPy bring linalg and sparse along with the special functions; that is theirs to mend.
SPECIAL = subprocess.run(
    [sys.executable, "-c", "import sys, scipy.special; print(*sys.modules)"], capture_output=True, text=True, check=True
)
NEVER = {"scipy.optimize", "scipy.stats", "scipy.sparse", "scipy.linalg", *HEAVY} - set(SPECIAL.stdout.split())
SCIPY = {"scipy"}
MODELS = {"howsure.calibrators.choice", "howsure.report.comparison"}
STREAMS = {"howsure.scale", "howsure.serving"}
RUN = """
import sys
from howsure.cli.main import main
try:
    main(sys.argv[1:])
except SystemExit as e:
    code = e.code
print(code, *sys.modules, file=sys.stderr)
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("files")
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, 400)
    for name in ("a.npz", "b.npz"):
        z = 2 * rng.normal(size=(400, 3)) + 4 * np.eye(3)[labels]
        hs.write(hs.Predictions.from_logits(z, labels), folder / name)
    (folder / "a.csv").write_text("confidence,correct\n" + "0.9,1\n0.8,1\n0.7,0\n" * 20)
    hs.save(hs.policies.Policy("max_prob", 0.8), folder / "p.json")
    return folder


COMMANDS = {
    "--help": (["--help"], {*NEVER, *SCIPY, *MODELS, *STREAMS, "rich"}),
    "evaluate --help": (["evaluate", "--help"], {*NEVER, *SCIPY, *MODELS, *STREAMS, "rich"}),
    "doctor": (["doctor", "a.npz"], {*NEVER, *SCIPY, *MODELS, *STREAMS}),
    "decide": (["decide", "p.json", "a.csv"], {*NEVER, *SCIPY, "howsure.scale", "howsure.report.comparison"}),
    "threshold": (["threshold", "a.npz", "--risk", "0.3"], {*NEVER, "howsure.scale"}),
    "check": (["check", "a.npz", "--max-ece", "0.9"], {*NEVER, *STREAMS}),
    "evaluate": (["evaluate", "a.npz"], {*NEVER, *MODELS, *STREAMS}),
    "compare": (["compare", "a.npz", "b.npz"], {*NEVER, *STREAMS} - {"jinja2"}),
    "calibrate": (["calibrate", "--fit", "a.npz", "--on", "b.npz"], {*NEVER, *STREAMS}),
}


def imported(arguments: list[str], folder: Path) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", RUN, *arguments], cwd=folder, capture_output=True, text=True, check=True, timeout=120
    )
    code, *modules = done.stderr.strip().splitlines()[-1].split()
    assert code in ("0", "1"), done.stderr
    return set(modules)


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_imports_only_what_it_uses(name: str, folder: Path) -> None:
    arguments, unwanted = COMMANDS[name]
    assert sorted(imported(arguments, folder) & unwanted) == []


def test_the_first_metric_needs_numpy_alone() -> None:
    used = "import howsure; howsure.tally; howsure.aurc"
    code = f"import sys, dataclasses, numpy; before = set(sys.modules); {used}; print(*set(sys.modules) - before)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    tops = {name.partition(".")[0] for name in done.stdout.split()}
    assert tops & {"scipy", "statistics", "decimal", "inspect", "json", "click", "rich", *HEAVY} == set()


def test_a_stream_of_parquet_does_without_pandas(folder: Path) -> None:
    pytest.importorskip("pyarrow")
    hs.write(hs.Predictions.from_confidence([0.9, 0.8, 0.7] * 20, [1, 1, 0] * 20), folder / "rows.parquet")
    found = imported(["evaluate", "rows.parquet", "--stream"], folder)
    assert sorted(found & {"pandas", "scipy.optimize", "torch"}) == []


def test_a_command_takes_one_thread_unless_told_otherwise() -> None:
    code = "import os; import howsure.cli; print(os.environ['OPENBLAS_NUM_THREADS'])"
    told = {**os.environ, "OPENBLAS_NUM_THREADS": "3"}
    quiet = {name: value for name, value in told.items() if not name.endswith("_NUM_THREADS")}
    for environment, threads in ((quiet, "1"), (told, "3")):
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=True)
        assert done.stdout.strip() == threads
