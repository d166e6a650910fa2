"""Objects of pandas, polars, xarray and torch go into the constructors as they are."""

import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from howsure import Predictions

P = np.array([[0.9, 0.1], [0.3, 0.7]])


def check(probs: Any, labels: Any, **beside: Any) -> None:
    preds = Predictions.from_probs(probs, labels, **beside)
    assert preds.probs[:, 1].tolist() == P[:, 1].tolist()  # of two classes this one is kept
    assert preds.labels.tolist() == [0, 0]
    assert preds.ids.tolist() == ["a", "b"]
    assert preds.weight.tolist() == [1.0, 2.0]


def test_pandas() -> None:
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(
        {"p0": P[:, 0], "p1": P[:, 1], "y": [0, 0], "id": ["a", "b"], "w": [1.0, 2.0]}
    )
    check(frame[["p0", "p1"]], frame["y"], ids=frame["id"], weight=frame["w"])
    check(
        frame[["p0", "p1"]],
        frame["y"].astype("Int64"),
        ids=frame["id"].astype("string"),
        weight=frame["w"],
    )
    top = Predictions.from_confidence(frame["p0"], (frame["y"] == 0).astype("boolean"))
    assert top.correct.tolist() == [True, True]


def test_polars() -> None:
    pl = pytest.importorskip("polars")
    frame = pl.DataFrame(
        {"p0": P[:, 0], "p1": P[:, 1], "y": [0, 0], "id": ["a", "b"], "w": [1.0, 2.0]}
    )
    check(frame[["p0", "p1"]], frame["y"], ids=frame["id"], weight=frame["w"])


def test_xarray() -> None:
    xr = pytest.importorskip("xarray")
    wrap = lambda a, *dims: xr.DataArray(a, dims=dims)
    check(
        wrap(P, "row", "class"),
        wrap([0, 0], "row"),
        ids=wrap(["a", "b"], "row"),
        weight=wrap([1.0, 2.0], "row"),
    )


def test_pyarrow_and_torch() -> None:
    pa = pytest.importorskip("pyarrow")
    check(P, pa.array([0, 0]), ids=pa.array(["a", "b"]), weight=pa.array([1.0, 2.0]))
    torch = pytest.importorskip("torch")
    check(
        torch.tensor(P, requires_grad=True),
        torch.tensor([0, 0]),
        ids=["a", "b"],
        weight=torch.tensor([1.0, 2.0]),
    )


def test_none_of_them_is_imported() -> None:
    code = (
        "import sys, howsure as hs, howsure.formats\n"
        "hs.Predictions.from_probs([[0.5, 0.5]], [0])\n"
        "found = {'pandas', 'polars', 'xarray', 'pyarrow', 'torch', 'safetensors', 'scipy'} & set(sys.modules)\n"
        "assert not found, found"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
