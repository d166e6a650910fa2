"""Calibrators against peers, and damaged files: `python -m benchmarks.calibration
[temperature|matrix|files]`.
"""

from __future__ import annotations

import logging
import random
import sys
import tempfile
import warnings
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

import howsure as hs

from .peers import without_parents
from .rows import Row
from .timing import once, seconds
from .workloads import logits

FILES = 10_000


def temperature_rows() -> Iterator[Row]:
    """The loss that each library's temperature reaches above the least one, and its time."""
    z, labels = logits(100_000, 100)
    z *= np.float32(1.7)
    preds = hs.Predictions.from_logits(z, labels)
    ours = hs.calibrators.Temperature.fit(preds)
    least, own = (
        hs.nll(ours(preds)),
        seconds(lambda: hs.calibrators.Temperature.fit(preds), repeats=3)[0],
    )
    for name, fit in PEERS.items():
        found: list[float] = []
        try:
            time = once(lambda fit=fit, found=found: found.append(fit(z, labels)))
        except ImportError as error:
            yield Row(
                f"temperature, peer {name}",
                None,
                "",
                detail=f"left out, cannot be used here: {error}",
            )
            continue
        worse = hs.nll(hs.calibrators.Temperature(found[0])(preds)) - least
        detail = f"{1e3 * own:.0f} ms against {1e3 * time:.0f} ms; T {ours.temperature:.6f} against {found[0]:.6f}, "
        yield Row(
            f"temperature, peer {name}",
            time / own,
            "× faster",
            5,
            15,
            True,
            detail + f"their NLL {worse:+.1e}",
        )


def _scikit_learn(z: Any, labels: Any) -> float:
    return 1 / float(
        import_module("sklearn.calibration")._TemperatureScaling().fit(z, labels).beta_
    )


def _netcal(z: Any, labels: Any) -> float:
    scaling = import_module("netcal.scaling").TemperatureScaling()
    p = np.exp(z - z.max(axis=1, keepdims=True))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = scaling.fit(p / p.sum(axis=1, keepdims=True), labels)
    return 1 / float(np.ravel(fitted.weights)[0])


def _torch_uncertainty(z: Any, labels: Any) -> float:
    """Its scaler alone; the package around it wants lightning."""
    torch = import_module("torch")
    base = without_parents("torch_uncertainty.post_processing.abstract").PostProcessing
    sys.modules["torch_uncertainty.post_processing"].PostProcessing = base  # pyright: ignore[reportAttributeAccessIssue]
    scaler = without_parents(
        "torch_uncertainty.post_processing.calibration.temperature_scaler"
    ).TemperatureScaler()
    data = torch.utils.data.TensorDataset(torch.from_numpy(z), torch.from_numpy(labels))
    logging.disable(logging.WARNING)
    scaler.fit(torch.utils.data.DataLoader(data, batch_size=10_000), progress=False)
    return 1 / float(scaler.inv_temperature[0].detach())


PEERS = {"scikit-learn": _scikit_learn, "netcal": _netcal, "torch-uncertainty": _torch_uncertainty}


def matrix_rows() -> Iterator[Row]:
    """Matrix scaling is multinomial logistic regression of the logits; theirs is stopped at several
    tolerances.
    """
    n, k = 10_000, 100
    rng = np.random.default_rng(0)
    labels = rng.integers(0, k, n)
    z = (
        2
        * (rng.normal(size=(n, k)) + 2.5 * np.eye(k)[labels])
        @ (np.eye(k) + rng.normal(size=(k, k)) / 10)
    )
    preds = hs.Predictions.from_logits(z, labels)
    made: list[Any] = []
    own = once(lambda: made.append(hs.calibrators.MatrixScaling.fit(preds)))
    least = hs.nll(made[0](preds))
    regression = import_module("sklearn.linear_model").LogisticRegression
    for tolerance in (1e-4, 1e-5, 1e-6):
        time = once(
            lambda t=tolerance: made.append(
                regression(C=np.inf, tol=t, max_iter=5000).fit(z, labels)
            )
        )
        theirs = hs.calibrators.MatrixScaling(made[-1].coef_, made[-1].intercept_)
        detail = f"{own:.1f} s against {time:.1f} s; their NLL {hs.nll(theirs(preds)) - least:+.1e}"
        yield Row(
            f"matrix scaling, {n:,} × {k}, peer's tol {tolerance:g}",
            time / own,
            "× faster",
            1,
            None,
            True,
            detail,
        )


def file_rows() -> Iterator[Row]:
    """Accidents that a saved calibrator survives with another meaning: there must be none."""
    rng, accepted, wrong = random.Random(0), 0, 0
    labels = np.arange(90) % 3
    preds = hs.Predictions.from_logits(
        np.random.default_rng(0).normal(size=(90, 3)) + np.eye(3)[labels], labels
    )
    made = hs.calibrators.MatrixScaling.fit(preds)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "c.json"
        hs.save(made, path)
        text = path.read_bytes()
        for _ in range(FILES):
            path.write_bytes(mutated(text, rng))
            try:
                again = hs.load(path)
            except hs.InputError:
                continue
            accepted += 1
            hs.save(again, path)
            wrong += path.read_bytes() != text
    yield Row(
        f"{FILES:,} damaged files: accepted with another meaning",
        wrong,
        "files",
        0,
        detail=f"{accepted} harmless",
    )


def mutated(text: bytes, rng: random.Random) -> bytes:
    """One small accident: a byte changed, a piece lost or doubled, two bytes swapped."""
    data, i, j = bytearray(text), rng.randrange(len(text)), rng.randrange(len(text))
    kind = rng.randrange(5)
    if kind == 0:
        data[i] = rng.randrange(256)
    elif kind == 1:
        del data[i : i + rng.randrange(1, 9)]
    elif kind == 2:
        data[i:i] = data[j : j + 9]
    elif kind == 3:
        data[i], data[j] = data[j], data[i]
    else:
        data[i] = rng.choice(b"0123456789")
    return bytes(data)


JOBS = {"temperature": temperature_rows, "matrix": matrix_rows, "files": file_rows}


def main(names: list[str]) -> None:
    for name in names or JOBS:
        for row in JOBS[name]():
            value = "" if row.value is None else f"{row.value:.3g} {row.unit}"
            print(f"{row.job}: {value} {row.verdict} {row.detail}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
