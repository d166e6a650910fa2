"""torchmetrics: the numbers of compact tallies, the same bits for any number of processes, and
refusals.
"""

import json
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import howsure as hs
from howsure import InputError
from howsure.tallies.buckets import make_grid
from howsure.tallies.row_tally import bucket_rows, find_edge_cuts

torch = pytest.importorskip("torch")
MetricCollection = pytest.importorskip("torchmetrics").MetricCollection
made = pytest.importorskip("howsure.integrations.torchmetrics")
locate_cells, build_grid_tally = made.locate_cells, made.build_grid_tally

WORKER = Path(__file__).with_name("gloo_worker.py")
TALLY_METRICS = [
    (made.AECE, hs.aece, {}),
    (made.AUGRC, hs.augrc, {}),
    (made.AUPR, hs.aupr, {"positive": "success"}),
    (made.AURC, hs.aurc, {}),
    (made.AUROC, hs.auroc, {}),
    (made.Accuracy, hs.accuracy, {}),
    (made.CoverageAtRisk, hs.coverage_at_risk, {"risk": 0.1}),
    (made.EAURC, hs.e_aurc, {}),
    (made.ECE, hs.ece, {"bins": hs.equal_range(10)}),
    (made.MCE, hs.mce, {}),
]


def outputs(n: int = 5000, k: int = 6, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Logits of a network that is sometimes very sure, and labels."""
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(n, k)) * rng.exponential(4, size=(n, 1))
    return z.astype(np.float32), (z + 3 * rng.normal(size=z.shape)).argmax(axis=1)


def tensors(*arrays: np.ndarray) -> list[Any]:
    return [torch.from_numpy(a) for a in arrays]


def counted(metric: Any, z: np.ndarray, y: np.ndarray, batch: int = 512) -> Any:
    for i in range(0, len(y), batch):
        metric.update(*tensors(z[i : i + batch], y[i : i + batch]))
    return metric


@pytest.mark.parametrize("buckets", [400, 25_000])
def test_the_state_is_the_compact_tally(buckets: int) -> None:
    z, y = outputs(40_000)
    preds = hs.Predictions.from_logits(z, y)
    exact = hs.tally(preds.confidence, correct=preds.correct)
    expected = bucket_rows(exact, find_edge_cuts(exact, make_grid(buckets)))
    found = counted(made.ECE(outputs="logits", buckets=buckets), z, y).tally()
    assert found.count.tolist() == expected.count.tolist()
    assert found.loss.tolist() == expected.loss.tolist()
    assert found.score == pytest.approx(expected.score, abs=1e-12)
    assert (np.diff(found.score) < 0).all()
    assert hs.aurc(found + found) == pytest.approx(hs.aurc(expected + expected), rel=1e-9)


def test_scores_at_the_ends_of_buckets_stay_inside() -> None:
    edges = make_grid(400)
    inside = np.nextafter(edges[:-1], 1)  # the lowest score of each bucket but the first
    for score in (edges, inside):
        bucket, wrong, below = locate_cells(score, np.ones(len(score), dtype=bool), 400)
        sums = [
            np.bincount(bucket, weights, len(edges)).astype(np.int64)
            for weights in (None, wrong, below)
        ]
        t = build_grid_tally(*sums, 400)
        assert t is not None
        assert t.count.tolist() == np.unique(bucket, return_counts=True)[1][::-1].tolist()
        assert (np.searchsorted(edges, t.score) == np.unique(bucket)[::-1]).all()


@pytest.mark.parametrize(
    ("metric", "function", "options"), TALLY_METRICS, ids=lambda x: getattr(x, "__name__", "")
)
def test_values_are_those_of_howsure(metric: Any, function: Any, options: dict[str, Any]) -> None:
    z, y = outputs()
    preds = hs.Predictions.from_logits(z, y)
    exact = function(hs.tally(preds.confidence, correct=preds.correct), **options)
    found = counted(metric(outputs="logits", **options), z, y).compute()
    assert found.dtype == torch.float64
    assert found.item() == pytest.approx(exact, abs=5e-4)  # confidences of one bucket are ties
    assert metric.higher_is_better == (function.better == "higher")


@pytest.mark.parametrize("metric", [hs.aurc, hs.auroc, hs.augrc, hs.ece, hs.e_aurc])
@pytest.mark.parametrize("buckets", [400, 25_000])
def test_certified_bounds_hold_the_exact_value(metric: Any, buckets: int) -> None:
    z, y = outputs()
    preds = hs.Predictions.from_logits(z, y)
    low, high = hs.certified(
        metric, counted(made.ECE(outputs="logits", buckets=buckets), z, y).tally()
    )
    assert low <= metric(hs.tally(preds.confidence, correct=preds.correct)) <= high


def test_bins_of_the_grid_stay_exact() -> None:
    z, y = outputs()
    preds = hs.Predictions.from_logits(z, y)
    t = hs.tally(preds.confidence, correct=preds.correct)
    for bins in (hs.equal_range(10), hs.equal_range(15)):
        found = counted(made.ECE(outputs="logits", bins=bins), z, y).compute().item()
        assert found == pytest.approx(hs.ece(t, bins), abs=1e-13)


@pytest.mark.parametrize(("metric", "function"), [(made.NLL, hs.nll), (made.Brier, hs.brier)])
@pytest.mark.parametrize("kind", ["logits", "probs"])
def test_losses_are_those_of_howsure(metric: Any, function: Any, kind: Any) -> None:
    z, y = outputs()
    preds = hs.Predictions.from_logits(z, y)
    values = z if kind == "logits" else preds.probs
    assert counted(metric(outputs=kind), values, y).compute().item() == pytest.approx(
        function(preds), rel=1e-9
    )


def test_a_label_of_probability_0_costs_infinity() -> None:
    metric = made.NLL(outputs="probs")
    metric.update(torch.tensor([[1.0, 0.0], [0.5, 0.5]]), torch.tensor([1, 0]))
    assert metric.compute().item() == np.inf


def test_two_processes_give_the_bits_of_one(tmp_path: Path) -> None:
    z, y = outputs(3001)
    np.savez(tmp_path / "data.npz", logits=z, labels=y)
    command = [sys.executable, str(WORKER)]
    tail = ["2", str(tmp_path / "meeting"), str(tmp_path / "data.npz")]
    both = [
        subprocess.Popen([*command, str(rank), *tail], stdout=subprocess.PIPE, text=True)
        for rank in range(2)
    ]
    texts = [process.communicate(timeout=900)[0] for process in both]
    assert [process.returncode for process in both] == [0, 0]
    from integrations.gloo_worker import CLASSES, values

    alone = values(z, y, batch=3001)
    assert len(alone) == len(CLASSES)
    assert [json.loads(text) for text in texts] == [alone, alone]


@pytest.mark.parametrize("seed", range(3))
def test_neither_order_nor_batches_matter(seed: int) -> None:
    z, y = outputs(1500)
    order = np.random.default_rng(seed).permutation(len(y))
    for metric in (made.ECE, made.AURC, made.NLL):
        one = counted(metric(outputs="logits"), z, y, batch=1500).compute()
        assert (
            counted(metric(outputs="logits"), z[order], y[order], batch=[3, 7, 333][seed]).compute()
            == one
        )


def test_a_collection_counts_once_for_all() -> None:
    z, y = outputs()
    several = MetricCollection(
        [made.ECE(outputs="logits"), made.AURC(outputs="logits"), made.NLL(outputs="logits")]
    )
    counted(several, z, y)
    assert sorted(map(sorted, several.compute_groups.values())) == [["AURC", "ECE"], ["NLL"]]
    for name, value in several.compute().items():
        assert value == counted(getattr(made, name)(outputs="logits"), z, y).compute()


def test_forward_gives_the_batch_and_keeps_the_whole() -> None:
    z, y = outputs(1000)
    metric = made.ECE(outputs="logits")
    first, second = metric(*tensors(z[:400], y[:400])), metric(*tensors(z[400:], y[400:]))
    assert first == counted(made.ECE(outputs="logits"), z[:400], y[:400]).compute()
    assert second == counted(made.ECE(outputs="logits"), z[400:], y[400:]).compute()
    assert metric.compute() == counted(made.ECE(outputs="logits"), z, y).compute()


def test_reset_forgets() -> None:
    z, y = outputs(1000)
    metric = counted(made.AURC(outputs="logits"), z[:500], y[:500])
    metric.reset()
    assert counted(metric, z[500:], y[500:]).tally().n == 500


@pytest.mark.parametrize("metric", [made.ECE, made.NLL])
def test_metrics_are_copied_moved_and_keep_whole_numbers(metric: Any) -> None:
    z, y = outputs(1000)
    given = counted(metric(outputs="logits"), z, y)
    value = given.compute()
    for again in (
        pickle.loads(pickle.dumps(given)),
        given.clone(),
        given.to("cpu").half().set_dtype(torch.float16),
    ):
        assert getattr(again, metric.STATES[0]).dtype == torch.int64
        assert again.compute() == value
        assert again.update(*tensors(z, y)) is None


def test_memory_does_not_grow() -> None:
    z, y = outputs(20_000)
    metric = made.AURC(outputs="logits")
    size = lambda: sum(getattr(metric, name).nbytes for name in metric.STATES)
    before = size()
    counted(metric, z, y)
    assert size() == before < 700_000


def test_a_state_saved_with_a_model_comes_back() -> None:
    z, y = outputs(1000)
    given = counted(made.ECE(outputs="logits"), z, y)
    given.persistent(True)
    again = made.ECE(outputs="logits")
    again.load_state_dict(given.state_dict())
    assert again.tally().n == 1000


def test_pixels_two_classes_half_precision_and_ignored_labels() -> None:
    z, y = outputs(600, k=3)
    images = torch.from_numpy(z).reshape(2, 300, 3).movedim(2, 1).reshape(2, 3, 10, 30)
    labels = torch.from_numpy(y).reshape(2, 10, 30).clone()
    labels[0, 0, :5] = 255
    metric = made.ECE(outputs="logits", ignore_index=255)
    metric.update(images, labels)
    assert metric.compute() == counted(made.ECE(outputs="logits"), z[5:], y[5:]).compute()
    metric.update(images[:0], labels[:0])
    assert metric.tally().n == 595
    one = made.Accuracy(outputs="probs")
    one.update(torch.tensor([0.2, 0.9]), torch.tensor([0, 0]))
    assert one.compute() == 0.5
    rough = made.ECE(outputs="probs")
    rough.update(torch.from_numpy(z).softmax(dim=1).bfloat16(), torch.from_numpy(y))
    assert rough.tally().n == 600


def test_compute_before_update_warns_and_is_not_a_number() -> None:
    for metric in (made.ECE(outputs="logits"), made.NLL(outputs="logits")):
        with pytest.warns(UserWarning, match="was called before"):
            assert metric.compute().isnan()


PROBS, LABELS = torch.tensor([[0.9, 0.1], [0.2, 0.8]]), torch.tensor([0, 1])
BAD = [
    ("logits", (PROBS, PROBS), LABELS, "preds is a tuple of 2; pass the one array that is meant"),
    (
        "logits",
        PROBS,
        LABELS,
        "all 2 rows are non-negative and sum to 1: these are probabilities, not logits",
    ),
    ("probs", PROBS * 3, LABELS, r"probs\[0\] lies outside \[0, 1\] .* Are these logits"),
    (
        "logits",
        PROBS - 1,
        torch.eye(2),
        r"target has shape \(2, 2\) for preds of shape \(2, 2\); one class number",
    ),
    (
        "logits",
        PROBS - 1,
        torch.tensor([0, 2]),
        r"labels\[1\] is 2; with 2 classes labels run from 0 to 1",
    ),
    ("logits", PROBS * np.nan, LABELS, "logits has 4 nan"),
    ("logits", PROBS - 1, LABELS[:1], r"target has shape \(1,\) for preds of shape \(2, 2\)"),
    ("logits", "0.9", LABELS, "preds has dtype <U3; numbers are needed"),
]


@pytest.mark.parametrize(("kind", "preds", "target", "message"), BAD)
def test_refusals(kind: Any, preds: Any, target: Any, message: str) -> None:
    metric = made.ECE(outputs=kind)
    with pytest.raises(InputError, match=message):
        metric.update(preds, target)
    assert metric.tally() is None


def test_what_the_numbers_are_must_be_said() -> None:
    with pytest.raises(InputError, match="outputs is 'auto'; say 'logits' or 'probs'"):
        made.ECE(outputs="auto")
    with pytest.raises(TypeError, match="outputs"):
        made.ECE()
    with pytest.raises(ValueError, match="Unexpected keyword arguments: `bin`"):
        made.ECE(outputs="logits", bin=15)
    with pytest.raises(InputError, match="the loss of row 1 is 1e\\+30"):
        made.NLL(outputs="logits").update(
            torch.tensor([[0.0, 1.0], [0.0, 1e30]]), torch.tensor([0, 0])
        )


def test_few_samples_are_exact() -> None:
    metric = made.AUROC(outputs="probs")
    p = torch.tensor([0.60003, 0.60001, 0.9], dtype=torch.float64)
    metric.update(torch.stack((1 - p, p), dim=1), torch.tensor([0, 1, 1]))
    assert (
        metric.compute().item() == 0.5
    )  # the wrong answer stands between two right ones; as ties it would be 0.75


@pytest.mark.parametrize(("metric", "function", "options"), TALLY_METRICS)
def test_up_to_ten_thousand_samples_are_exact_however_they_come(
    metric: Any, function: Any, options: Any
) -> None:
    z, y = outputs(made.EXACT_SAMPLES)
    preds = hs.Predictions.from_logits(z, y)
    expected = function(hs.tally(preds.confidence, correct=preds.correct), **options)
    forwards, merged = metric(outputs="logits", **options), metric(outputs="logits", **options)
    for i in range(0, len(y), 1000):
        forwards(*tensors(z[i : i + 1000], y[i : i + 1000]))  # forward joins states
        part = counted(metric(outputs="logits", **options), z[i : i + 1000], y[i : i + 1000])
        merged.merge_state(part)
    assert forwards.compute().item() == merged.compute().item() == expected


def test_one_more_sample_is_counted_on_the_grid_however_it_comes() -> None:
    z, y = outputs(made.EXACT_SAMPLES + 1)
    whole = counted(made.AURC(outputs="logits"), z, y)
    parts = counted(made.AURC(outputs="logits"), z[:5000], y[:5000])
    parts.merge_state(counted(made.AURC(outputs="logits"), z[5000:], y[5000:]))
    assert whole.tally().approximate == parts.tally().approximate != None  # noqa: E711
    assert whole.compute().item() == parts.compute().item()


@pytest.mark.parametrize(("metric", "function", "options"), TALLY_METRICS)
def test_a_metric_behaves_as_torchmetrics_asks_of_its_own(
    metric: Any, function: Any, options: Any
) -> None:
    """What the tester of torchmetrics' own suite asks: constants, script, clone, pickle, hash,
    batches, all.
    """
    z, y = outputs(600)
    exact = lambda rows: function(hs.tally(*_judged(z[rows], y[rows])), **options)
    found = metric(outputs="logits", **options)
    for name in ("is_differentiable", "higher_is_better"):
        with pytest.raises(RuntimeError):
            setattr(found, name, not getattr(found, name))
    assert torch.jit.script(found) is not None
    clone = found.clone()
    assert clone is not found
    assert type(clone) is type(found)
    found = pickle.loads(pickle.dumps(found))
    for i in range(0, 600, 100):
        rows = slice(i, i + 100)
        batch = found(*tensors(z[rows], y[rows]))
        assert batch.item() == pytest.approx(exact(rows), abs=1e-8)
        assert batch.requires_grad == found.is_differentiable
    assert hash(found)
    assert found.state_dict() == {}
    assert found.compute().item() == pytest.approx(exact(slice(None)), abs=1e-8)
    found.reset()
    assert found.tally() is None


def _judged(z: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    preds = hs.Predictions.from_logits(z, y)
    return preds.confidence, preds.correct
