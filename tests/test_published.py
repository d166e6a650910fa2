"""Published and recomputed numbers of real networks, read from the files with NumPy alone."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.real_sets import SETS

import howsure as hs

PUBLISHED = [
    "ak_resnet20_c10",
    "ak_resnet32_c10",
    "hollance_snacks",
    "in1k_timm_efficientnet_b3a",
    "in1k_tv_resnext101_32x8d",
    "llm_mmlu_gpt_35_turbo",
    "nn_resnet110_c10",
    "nn_resnet110_c100_top",
]
FLOAT32 = 2e-6  # published numbers were computed in float32
Arrays = Callable[[str], dict[str, Any]]


def predictions(a: dict[str, Any], split: str) -> hs.Predictions:
    """One split, or both joined as `all`."""
    parts = ["val", "test"] if split == "all" else [split]
    column = lambda name: np.concatenate([a[f"{part}_{name}"] for part in parts])
    if "test_conf" in a:
        return hs.Predictions.from_confidence(column("conf"), column("correct"))
    labels = column("labels")
    if "test_logits" not in a:
        return hs.Predictions.from_probs(column("probs"), labels)
    z = column("logits")
    if z.ndim == 4:  # image, class, row, column: one sample per pixel
        z, labels = np.moveaxis(z, 1, -1).reshape(-1, z.shape[1]), labels.reshape(-1)
    return hs.Predictions.from_logits(z, labels)


def numbers(preds: hs.Predictions) -> dict[str, float]:
    """The numbers of the index, under its names."""
    t = hs.tally(hs.scores.max_prob(preds), correct=preds.correct)
    out = {
        "accuracy": hs.accuracy(preds),
        "mean_conf": preds.confidence.mean(),
        "auroc_err": hs.auroc(t),
    }
    for m in (10, 15, 20):
        out |= {f"ece{m}": hs.ece(t, hs.equal_range(m)), f"mce{m}": hs.mce(t, hs.equal_range(m))}
    if preds.kind != "confidence":
        out |= {
            "nll": hs.nll(preds),
            "brier": hs.brier(preds),
            "nll_clip1e15": hs.nll(preds, eps=1e-15),
        }
    return {**out, "n": preds.n}


def as_recomputed(preds: hs.Predictions) -> dict[str, float]:
    """The index clips probabilities at 1e-12 for the NLL, and ranks them by 1 − p in the precision
    of the file, a subtraction that merges neighbouring scores into ties."""
    found = numbers(preds)
    if preds.kind == "probs":
        t = hs.tally(-(1 - preds.values.max(axis=1)), correct=preds.correct)
        found |= {"nll": hs.nll(preds, eps=1e-12), "auroc_err": hs.auroc(t)}
    return found


def published_split(case: dict[str, Any]) -> str:
    """Published numbers are those of the whole set, where the source split it into none."""
    return "all" if case["recomputed_all"] else "test"


def published(case: dict[str, Any]) -> dict[str, float]:
    return {
        key: value for key, value in (case["published"] or {}).items() if isinstance(value, float)
    }


def test_the_lists_are_complete(index: dict[str, Any]) -> None:
    assert sorted(index) == SETS
    assert sorted(name for name, case in index.items() if published(case)) == PUBLISHED


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_numbers(name: str, index: dict[str, Any], arrays: Arrays) -> None:
    found = numbers(predictions(arrays(name), published_split(index[name])))
    for key, value in published(index[name]).items():
        if key.endswith("_percent"):
            digits = len(str(value).partition(".")[2])
            own = {
                "ece10_percent": "ece10",
                "accuracy_percent": "accuracy",
                "auroc_percent": "auroc_err",
            }[key]
            assert round(100 * found[own], digits) == value, key
        else:
            assert found[key] == pytest.approx(value, abs=FLOAT32), key


@pytest.mark.parametrize("name", SETS)
def test_recomputed_numbers(name: str, index: dict[str, Any], arrays: Arrays) -> None:
    given = {split: index[name].get(f"recomputed_{split}") for split in ("val", "test", "all")}
    assert given["test"]
    for split, expected in given.items():
        if expected:
            found = as_recomputed(predictions(arrays(name), split))
            for key, value in expected.items():
                if value is not None:
                    assert found[key] == pytest.approx(value, abs=FLOAT32), (split, key)


def test_published_bin_counts(index: dict[str, Any], arrays: Arrays) -> None:
    name = "in1k_tv_resnext101_32x8d"
    preds = predictions(arrays(name), "all")
    t = hs.tally(preds.confidence, correct=preds.correct)
    assert (
        hs.reliability(t, hs.equal_range(20)).weight.tolist()
        == index[name]["published"]["bin_counts_20"]
    )


def test_real_samples(arrays: Arrays) -> None:
    """20 passes of MC dropout: the mean is a better probability than a pass, and disagreement finds
    errors.
    """
    a = arrays("mc_fashion_cnn")
    z, y = a["mc_test_logits"][:, :2000], a["test_labels"][:2000]
    mean, one = hs.Predictions.from_samples(z, y), hs.Predictions.from_logits(z[0], y)
    assert hs.nll(mean) < hs.nll(one)
    for score in (hs.scores.mutual_information, hs.scores.variance, hs.scores.predictive_entropy):
        assert hs.auroc(hs.tally(score(mean), correct=mean.correct)) > 0.7


def test_real_segmentation(arrays: Arrays) -> None:
    """Dice of the kept pixels: keeping the surer half must not be worse than keeping all."""
    a = arrays("seg_unet_membrane")
    preds = predictions(a, "test")
    t = hs.dice_tally(preds.confidence, preds.prediction, preds.labels)
    assert t.risk[-1] == pytest.approx(
        1 - 2 * (preds.prediction & preds.labels).sum() / (preds.prediction + preds.labels).sum()
    )
    assert hs.risk_at_coverage(t, 0.5) < t.risk[-1]
    assert 0 < hs.aurc(t) < t.risk[-1]
