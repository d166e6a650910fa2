"""What each command imports: nothing that it does not use."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import howsure as hs
from howsure.cli.main import SPECIAL_FUNCTIONS

HEAVY = {
    "pyarrow",
    "pandas",
    "polars",
    "torch",
    "sklearn",
    "matplotlib",
    "dask",
    "fsspec",
    "jinja2",
    "onnx",
}
# Some releases of SciPy bring linalg along with the compiled special functions; that is theirs to
# mend.
LEAN = "import sys; from howsure.cli.main import load_special_lean; load_special_lean(); import scipy.special"
SPECIAL = subprocess.run(
    [sys.executable, "-c", f"{LEAN}; print(*sys.modules)"],
    capture_output=True,
    text=True,
    check=True,
)
DRESS = {
    "numpy.f2py",
    "numpy.ma",  # which np.unique and np.quantile load to ask whether values are masked
    "numpy.testing",
    "scipy._lib._array_api",
}  # what scipy.special imports for others
UNUSED = {"scipy.optimize", "scipy.stats", "scipy.sparse", "scipy.linalg", *DRESS, *HEAVY}
NEVER = UNUSED - set(SPECIAL.stdout.split())
SCIPY = {"scipy"}
MODELS = {"howsure.calibrators.choice", "howsure.report.comparing"}
STREAMS = {"howsure.scale", "howsure.serving"}
FITTING = {  # what chooses thresholds and judges them, which a decision does without
    "howsure.bounds",
    "howsure.curves",
    "howsure.metrics",
    "howsure.policies.deployment",
    "howsure.policies.guarantee",
    "howsure.policies.online",
    "howsure.policies.thresholds",
    "howsure.report",
    "howsure.uncertainty",
}
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
    "--help": (["--help"], {*NEVER, *SCIPY, *MODELS, *STREAMS, "rich", "numpy"}),
    "evaluate --help": (["evaluate", "--help"], {*NEVER, *SCIPY, *MODELS, *STREAMS, "rich"}),
    "doctor": (["doctor", "a.npz"], {*NEVER, *SCIPY, *MODELS, *STREAMS}),
    "decide": (
        ["decide", "p.json", "a.csv"],
        {*NEVER, *SCIPY, *FITTING, "howsure.scale", "howsure.serving.feedback"},
    ),
    "threshold": (["threshold", "a.npz", "--risk", "0.3"], {*NEVER, "howsure.scale"}),
    "check": (["check", "a.npz", "--require", "ece<=0.9"], {*NEVER, *STREAMS}),
    "evaluate": (["evaluate", "a.npz"], {*NEVER, *MODELS, *STREAMS}),
    "compare": (["compare", "a.npz", "b.npz"], {*NEVER, *STREAMS} - {"jinja2"}),
    "calibrate": (["calibrate", "--fit", "a.npz", "--on", "b.npz"], {*NEVER, *STREAMS}),
}


def imported(arguments: list[str], folder: Path) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", RUN, *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
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
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    tops = {name.partition(".")[0] for name in done.stdout.split()}
    assert (
        tops
        & {
            "scipy",
            "statistics",
            "decimal",
            "inspect",
            "json",
            "pathlib",
            "urllib",
            "click",
            "rich",
            *HEAVY,
        }
        == set()
    )


def test_a_loaded_policy_decides_without_what_chose_its_threshold(folder: Path) -> None:
    code = """
import sys, howsure as hs
hs.load("p.json").decide(hs.Predictions.from_probs([[0.9, 0.1]]))
print(*sys.modules)
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
    )
    assert sorted({*FITTING, *SCIPY, "howsure.formats"} & set(done.stdout.split())) == []


def test_a_stream_of_parquet_does_without_pandas(folder: Path) -> None:
    pytest.importorskip("pyarrow")
    hs.write(
        hs.Predictions.from_confidence([0.9, 0.8, 0.7] * 20, [1, 1, 0] * 20),
        folder / "rows.parquet",
    )
    found = imported(["evaluate", "rows.parquet", "--stream"], folder)
    assert sorted(found & {"pandas", "scipy.optimize", "torch"}) == []


def test_a_command_takes_one_thread_unless_told_otherwise() -> None:
    code = "import os; import howsure.cli; print(os.environ['OPENBLAS_NUM_THREADS'])"
    told = {**os.environ, "OPENBLAS_NUM_THREADS": "3"}
    quiet = {name: value for name, value in told.items() if not name.endswith("_NUM_THREADS")}
    for environment, threads in ((quiet, "1"), (told, "3")):
        done = subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            env=environment,
            check=True,
        )
        assert done.stdout.strip() == threads


def test_every_function_of_scipy_that_is_used_is_listed() -> None:
    """One that is not would bring the whole package along, and nobody would notice but by waiting."""
    lines = [
        line
        for path in Path(hs.__file__).parent.rglob("*.py")
        for line in path.read_text("utf-8").splitlines()
    ]
    used = [
        line.split("from scipy.special import ")[1]
        for line in lines
        if "from scipy.special import " in line
    ]
    assert sorted({name.strip() for names in used for name in names.split(",")}) == list(
        SPECIAL_FUNCTIONS
    )


def test_the_functions_of_scipy_are_its_own_and_the_rest_is_there_when_asked_for() -> None:
    code = """
import sys
from howsure.cli.main import SPECIAL_FUNCTIONS, load_special_lean
load_special_lean()
load_special_lean()
import scipy.special
alone = {name: getattr(scipy.special, name) for name in SPECIAL_FUNCTIONS}
assert "scipy.special._basic" not in sys.modules
assert not hasattr(scipy.special, "__wrapped__")
from scipy.stats import beta
import numpy as np
assert abs(beta.ppf(0.975, 3, 8) - scipy.special.betaincinv(3, 8, 0.975)) < 1e-14
assert scipy.special.comb(5, 2) == 10 and not hasattr(scipy.special, "no_such_name")
x, y, z = np.linspace(0.05, 0.9, 5), np.arange(1.0, 6.0), np.arange(2.0, 7.0)
for name, f in alone.items():
    given = ((y, z, x) if name.startswith("betainc") else (y, x), (x,))[f.nin == 1]
    assert np.array_equal(f(*given), getattr(scipy.special, name)(*given)), name
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
