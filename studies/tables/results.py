"""From prediction files to the library's objects; the only place where the tables touch files."""

from collections import Counter
from collections.abc import Iterable
from functools import cache

import numpy as np

import howsure as hs

from ..runs import Run
from ..store import Store


def finished(store: Store, runs: Iterable[Run]) -> list[Run]:
    return [run for run in runs if store.finished(run)]


def progress(store: Store, runs: list[Run]) -> str:
    """What a reader must know before the numbers: how much of the study has been run."""
    done, number = len(finished(store, runs)), f"{len(runs)} network{'s' * (len(runs) > 1)}"
    return f"{done} of {number} finished." if done < len(runs) else f"{number}, all finished."


def missing(store: Store, runs: list[Run]) -> str:
    """The networks that are not finished, by name."""
    left = Counter(title(run) for run in runs if not store.finished(run))
    names = [name if count == 1 else f"{name} ({count} repeats)" for name, count in left.items()]
    return f"Missing: {', '.join(names)}." if names else ""


def title(run: Run) -> str:
    """What the study calls the run, with its network."""
    network = run.settings.network
    return run.label if run.label.startswith(network) else f"{network} {run.label}"


def again(run: Run) -> str:
    """Which training of its network it is, where it is not the first."""
    return f", training {run.settings.seed + 1}" if run.settings.seed else ""


@cache
def arrays(store: Store, run: Run, extra: str = "") -> dict[str, np.ndarray]:
    path = store.predictions(run.settings, extra)
    if not path.exists():
        raise ValueError(f"{path.name} is not here: `python -m studies fetch` brings it.")
    with np.load(path, allow_pickle=False) as file:
        return {name: file[name] for name in file.files}


@cache
def predictions(store: Store, run: Run, split: str = "test") -> hs.Predictions:
    found = arrays(store, run, "train" if split == "train" else "")
    return hs.Predictions.from_logits(found[f"{split}_logits"], found[f"{split}_labels"])


def tally(preds: hs.Predictions) -> hs.Tally:
    """Ranked by the top probability, the confidence of all five papers."""
    return hs.tally(hs.scores.max_prob(preds), correct=preds.correct)


@cache
def temperature_scaled(store: Store, run: Run) -> hs.Predictions:
    """Test predictions with the temperature fitted on validation."""
    scaling = hs.calibrators.Temperature.fit(predictions(store, run, "val"))
    return scaling(predictions(store, run))


def by_network(runs: Iterable[Run]) -> dict[str, list[Run]]:
    """The repeats of each network, in the order of the list."""
    groups: dict[str, list[Run]] = {}
    for run in runs:
        groups.setdefault(run.settings.network, []).append(run)
    return groups
