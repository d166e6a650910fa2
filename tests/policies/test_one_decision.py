"""One decision at a time is the decision of the same row among many."""

import pickle
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from math import inf
from typing import Any

import numpy as np
import pytest

import howsure as hs
from howsure import InputError, calibrators
from howsure.policies import DriftMonitor, Policy, fit_suggestions, guaranteed_threshold
from howsure.policies.one_decision import LOGIT_SCORES, PROBABILITY_SCORES
from howsure.serving import GuaranteeMonitor, LiveMonitors

CALIBRATORS: dict[str, Callable[[hs.Predictions], Any]] = {
    "none": lambda _: None,
    "identity": lambda _: calibrators.Identity(),
    "temperature": calibrators.Temperature.fit,
    "mixed": lambda p: calibrators.Temperature.fit(p, mixed=True),
    "vector": calibrators.VectorScaling.fit,
    "matrix": lambda p: calibrators.MatrixScaling.fit(p, l2=0.01),
    "dirichlet": lambda p: calibrators.Dirichlet.fit(p, l2=0.01),
    "structured": calibrators.StructuredScaling.fit,
    "diagonal": lambda p: calibrators.StructuredScaling.fit(p, matrix="diagonal"),
    "platt": calibrators.Platt.fit,
    "beta": calibrators.Beta.fit,
    "isotonic": calibrators.Isotonic.fit,
    "histogram": calibrators.HistogramBinning.fit,
}
MATRICES = ("matrix", "dirichlet", "structured")


def make_preds(kind: str, k: int, n: int = 400, seed: int = 0) -> hs.Predictions:
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(n, k)) * 3
    z[:20] = np.round(z[:20])  # ties
    y = (z + 2 * rng.gumbel(size=z.shape)).argmax(axis=1)
    y[:k] = np.arange(k)
    if kind == "logits":
        return hs.Predictions.from_logits(z, y)
    p = np.exp(z - z.max(axis=1, keepdims=True))
    return hs.Predictions.from_probs(p / p.sum(axis=1, keepdims=True), y)


@pytest.mark.parametrize("kind", ["logits", "probs"])
@pytest.mark.parametrize("k", [2, 5, 70])
@pytest.mark.parametrize("name", CALIBRATORS)
def test_one_decision_is_that_of_many(name: str, k: int, kind: str) -> None:
    preds = make_preds(kind, k)
    calibrator = CALIBRATORS[name](preds)
    wanted = LOGIT_SCORES if kind == "logits" else PROBABILITY_SCORES
    if calibrator is not None and calibrator(preds).kind == "probs":
        wanted = PROBABILITY_SCORES
    for score in wanted:
        plain = Policy(score, 0.0, calibrator=calibrator).decide(preds)
        # The threshold is the score of a row, as a fitted one is.
        policy = Policy(score, float(np.sort(plain.score)[len(preds) // 2]), calibrator=calibrator)
        many = policy.decide(preds)
        for i in range(0, len(preds), 9):
            one = policy.decide_one(**{kind: preds.values[i]})
            assert one.answer == many.prediction[i]
            if name in MATRICES and k > 5:
                # A product of large matrices rounds each row by the rows beside it.
                assert one.score == pytest.approx(many.score[i], rel=2**-40, abs=2**-40)
                continue
            assert (one.score, one.confidence) == (many.score[i], many.confidence[i])
            assert one.accept == many.accept[i]


@pytest.mark.parametrize("name", ["none", "platt", "beta", "isotonic"])
def test_confidences_one_by_one(name: str) -> None:
    rng = np.random.default_rng(1)
    confidence = np.append(rng.random(300), [0.0, 1.0, 0.5, 0.5])
    preds = hs.Predictions.from_confidence(confidence, rng.random(304) < confidence)
    calibrator = CALIBRATORS[name](preds)
    for score in ("max_prob", "log_max_prob"):
        start = Policy(score, 0.0, calibrator=calibrator).decide(preds)
        policy = Policy(score, float(start.score[10]), calibrator=calibrator)
        many = policy.decide(preds)
        for i, c in enumerate(confidence.tolist()):
            one = policy.decide_one(confidence=c, prediction="yes")
            assert (one.accept, one.score) == (many.accept[i], many.score[i])
            assert one.answer == "yes"


def test_samples_costs_and_classes_ruled_out_go_through_decide() -> None:
    rng = np.random.default_rng(2)
    members = rng.normal(size=(4, 50, 3))
    preds = hs.Predictions.from_samples(members)
    for score in ("variance", "mutual_information", "max_prob"):
        policy = Policy(score, -0.1)
        many = policy.decide(preds)
        for i in range(50):
            one = policy.decide_one(logits=members[:, i])
            assert (one.accept, one.answer) == (many.accept[i], many.prediction[i])
    costs = Policy("cost", -0.2, costs=((0.0, 1.0), (10.0, 0.0)), k=2)
    two = hs.Predictions.from_probs([[0.9, 0.1], [0.4, 0.6]])
    assert [costs.decide_one(probs=p).accept for p in two.values] == costs.decide(
        two
    ).accept.tolist()
    out = Policy("entropy", 0.5)
    z = [[2.0, -inf, 0.0], [-0.0, 0.0, -inf]]
    many = out.decide(hs.Predictions.from_logits(z))
    assert [out.decide_one(logits=row).score for row in z] == many.score.tolist()


def test_binary_models_give_one_number() -> None:
    policy = Policy("max_prob", 0.9, class_names=("no", "yes"), k=2)
    assert policy.decide_one(probs=0.93).answer == "yes"
    assert policy.decide_one(probs=0.07) == policy.decide_one(probs=[0.93, 0.07])
    assert policy.decide_one(logits=3.0).accept
    many = policy.decide(hs.Predictions.from_logits([3.0, -3.0]))
    assert policy.decide_one(logits=[-3.0]).confidence == many.confidence[1]


def make_segmented(by: str, rest: Any = "defer") -> tuple[Policy, hs.Predictions]:
    rng = np.random.default_rng(3)
    n = 3000
    confidence = rng.random(n)
    preds = hs.Predictions.from_confidence(
        confidence,
        rng.random(n) < 0.5 + confidence / 2,
        prediction=rng.integers(0, 3, n),
        attributes={
            "site": rng.choice(["a", "b", "c"], n, p=[0.5, 0.49, 0.01]),
            "age": rng.integers(0, 90, n),
        },
    )
    fit = lambda t, delta=0.1: guaranteed_threshold(t, risk=0.1, delta=delta)
    return Policy.fit(preds, fit, by=by, rest=rest), preds


@pytest.mark.parametrize("rest", ["defer", "common"])
@pytest.mark.parametrize(
    "by", ["site", "age:40,60", "site,age:40,60", "predicted", "site,predicted"]
)
def test_segments_one_by_one(by: str, rest: str) -> None:
    policy, preds = make_segmented(by, rest)
    many = policy.decide(preds)
    assert many.segment is not None
    assert preds.attributes is not None
    for i in range(0, 3000, 37):
        row: Any = {name: column[i] for name, column in preds.attributes.items()}
        if "site" not in by and "age" not in by:
            row = None
        one = policy.decide_one(
            confidence=preds.values[i], prediction=int(preds.prediction[i]), segment=row
        )
        assert (one.accept, one.segment) == (many.accept[i], many.segment[i])
        assert many.known is not None
        assert one.known == many.known[i]


def test_segment_by_its_value_and_one_that_is_not_known() -> None:
    policy, _ = make_segmented("site")
    assert policy.decide_one(confidence=0.999, segment="a").accept
    small = policy.decide_one(confidence=0.999, segment="c")
    assert not small.accept
    assert small.reason == "segment 'c' has no guarantee"
    new = policy.decide_one(confidence=0.999, segment="zz")
    assert not new.accept
    assert not new.known
    assert new.reason == "segment 'zz' has no threshold of its own"
    ages, _ = make_segmented("age:40,60")
    assert ages.decide_one(confidence=0.5, segment=30).segment == "below 40"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "got 0 of logits="),
        ({"probs": [0.5, 0.5], "confidence": 0.5}, "got 2 of logits="),
        ({"probs": [0.2, 0.3, 0.5]}, "made for 2 classes, these probs are of 3"),
        ({"probs": [0.7, 0.7]}, "sums to 1.4, expected 1"),
        ({"probs": [1.2, -0.2]}, "outside"),
        ({"logits": [np.nan, 0.0]}, "nan"),
        ({"logits": [np.inf, 0.0]}, "infinite"),
        ({"logits": ["a", "b"]}, "numbers are needed"),
        ({"confidence": 1.5}, "a confidence lies in"),
        ({"confidence": np.nan}, "confidence is nan"),
        ({"confidence": [0.5, 0.6]}, "one number"),
        ({"score": 7.0}, "max_prob lies in"),
        ({"probs": [0.9, 0.1], "prediction": 1}, "leave out prediction="),
        ({"probs": [0.9, 0.1], "segment": "a"}, "leave out segment="),
    ],
)
def test_what_a_policy_was_not_made_for_is_refused(given: Any, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        Policy("max_prob", 0.8, k=2).decide_one(**given)
    assert "\n" not in str(caught.value)


def test_calibrators_and_segments_refuse_what_they_do_not_know() -> None:
    scaled = Policy("max_prob", 0.8, calibrator=calibrators.Temperature(2.0))
    with pytest.raises(InputError, match="calibrates or weighs costs"):
        scaled.decide_one(score=0.9)
    with pytest.raises(InputError, match="only the top label is known"):
        scaled.decide_one(confidence=0.9)
    with pytest.raises(InputError, match="only the top label is known"):
        Policy("entropy", 0.8).decide_one(confidence=0.9)
    policy, _ = make_segmented("site,age:40,60")
    with pytest.raises(InputError, match="has a threshold for each site,age"):
        policy.decide_one(confidence=0.9)
    with pytest.raises(InputError, match="segment has no 'age'"):
        policy.decide_one(confidence=0.9, segment={"site": "a"})
    image = Policy("max_prob", 0.8, by="image", keys=("mean",), thresholds=(0.8,))
    with pytest.raises(InputError, match="images of whole cases"):
        image.decide_one(probs=[0.9, 0.1])


def test_a_raw_score_is_compared_as_given() -> None:
    policy = Policy("energy", 3.0)
    assert policy.decide_one(score=3.0, prediction=2).accept
    assert not policy.decide_one(score=np.nextafter(3.0, 0)).accept
    assert policy.decide_one(score=inf).accept


def test_monitors_are_fed_by_the_call() -> None:
    rng = np.random.default_rng(4)
    policy = Policy("max_prob", 0.5)
    start = DriftMonitor.start(policy.decide(hs.Predictions.from_confidence(rng.random(500))))
    live = LiveMonitors(drift=start, guarantee=GuaranteeMonitor.start(risk=0.05))
    later = rng.random(730) ** 2
    for c in later.tolist():
        live.learn(policy.decide_one(confidence=c, monitor=live), correct=c > 0.7)
    many = policy.decide(hs.Predictions.from_confidence(later))
    together = start.see(many)
    assert live.drift is not None
    assert live.drift.alarms == together.alarms != {}
    assert live.drift.seen == 730
    assert (live.drift.score.capital == together.score.capital).all()
    guarantee = GuaranteeMonitor.start(risk=0.05).see(later[many.accept] > 0.7)
    assert live.guarantee is not None
    assert live.guarantee.labels == guarantee.labels
    assert live.alarms["guarantee"] == guarantee.broken


def test_threads_share_a_policy_and_its_monitors() -> None:
    preds = make_preds("logits", 5)
    policy = Policy("max_prob", 0.8, calibrator=calibrators.Temperature.fit(preds))
    many = policy.decide(preds)
    live = LiveMonitors(drift=DriftMonitor.start(many))
    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(lambda z: policy.decide_one(logits=z, monitor=live), preds.values))
    assert [one.accept for one in made] == many.accept.tolist()
    assert live.drift is not None
    assert live.drift.seen == len(preds)


def test_a_policy_that_has_decided_is_still_equal_and_copied() -> None:
    policy = Policy("max_prob", 0.8)
    policy.decide_one(confidence=0.9)
    assert policy == Policy("max_prob", 0.8)
    assert pickle.loads(pickle.dumps(policy)) == policy


def test_suggestions_for_what_is_deferred() -> None:
    preds = make_preds("probs", 5, n=2000)
    policy = Policy("max_prob", 0.9, calibrator=calibrators.Temperature.fit(preds))
    policy = fit_suggestions(policy, preds)
    many = policy.decide(preds)
    for i in range(0, 2000, 97):
        one = policy.decide_one(probs=preds.values[i])
        assert list(one.suggestions) == many.suggestions()[i]
