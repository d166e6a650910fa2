"""Without the library: which one is missing, and the command that brings it."""

import importlib
import subprocess
import sys
from typing import Any

import pytest

import howsure as hs

REPORT = hs.evaluate(hs.Predictions.from_probs([[0.9, 0.1], [0.2, 0.8]], [0, 1]))


@pytest.mark.parametrize(
    ("module", "package", "extra"),
    [
        ("torchmetrics", "torchmetrics", "torchmetrics"),
        ("lightning", "lightning.pytorch", "lightning"),
    ],
)
def test_at_import(module: str, package: str, extra: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, f"howsure.integrations.{module}", raising=False)
    if module == "torchmetrics":
        pytest.importorskip("torch")
    monkeypatch.setitem(sys.modules, package, None)
    message = rf"howsure.integrations.{module} needs {package}: pip install 'howsure\[{extra}\]'"
    with pytest.raises(ModuleNotFoundError, match=message):
        importlib.import_module(f"howsure.integrations.{module}")


@pytest.mark.parametrize(("module", "arguments"), [("tensorboard", ["runs"]), ("mlflow", [])])
def test_at_the_call(module: str, arguments: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    if module == "tensorboard":
        pytest.importorskip("torch")
    monkeypatch.setitem(sys.modules, module, None)
    log = importlib.import_module(f"howsure.integrations.{module}").log_report
    with pytest.raises(
        ModuleNotFoundError,
        match=rf"{module}.log_report needs {module}: pip install 'howsure\[{module}\]'",
    ):
        log(REPORT, *arguments)


def test_nothing_is_imported_before_it_is_asked_for() -> None:
    names = ("mlflow", "tensorboard", "transformers")
    code = "import sys; " + "; ".join(f"import howsure.integrations.{name}" for name in names)
    seen = f"{code}; print(sorted({{'torch', *{names}}} & set(sys.modules)))"
    assert (
        subprocess.run(
            [sys.executable, "-c", seen], capture_output=True, text=True, check=True
        ).stdout
        == "[]\n"
    )
