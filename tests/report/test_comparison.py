"""compare(): the right order, fair columns, paired differences, shift, groups, costs."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from howsure import InputError, Predictions, aurc, auroc, compare, evaluate, tally
from howsure.bounds import clopper_pearson_interval
from howsure.report.leaderboard import find_pareto_front, measure_separation
from howsure.report.render.comparison_page import shorten_names


def logits(rng: np.random.Generator, y: Any, signal: float) -> Any:
    return signal * np.eye(4)[y] + rng.normal(size=(len(y), 4))


@pytest.fixture(scope="module")
def pair() -> dict[str, Predictions]:
    rng = np.random.default_rng(0)
    y, ids = rng.integers(0, 4, 600), np.arange(600)
    group = np.where(ids % 5 == 0, "night", "day")
    weak = logits(rng, y, 2.0)
    weak[group == "night"] = rng.normal(size=((group == "night").sum(), 4))
    strong = Predictions.from_logits(logits(rng, y, 4.0), y, ids=ids, group=group)
    return {"weak": Predictions.from_logits(weak, y, ids=ids, group=group), "strong": strong}


@pytest.fixture(scope="module")
def data(pair: dict[str, Predictions]) -> dict[str, Any]:
    return compare(pair, by=True, cost={"weak": 1e6, "strong": 3e6}, cost_name="parameters").data


def test_the_better_model_comes_first_by_a_clear_paired_difference(data: dict[str, Any]) -> None:
    assert [row["name"] for row in data["models"]] == ["strong", "weak"]
    behind = data["models"][1]["behind"]
    assert behind["low"] < behind["value"] < behind["high"]
    assert behind["clear"]  # for day and night: two clusters are taken as they are


def test_a_clear_paired_difference_of_independent_samples(pair: dict[str, Predictions]) -> None:
    alone = {name: replace(p, group=None) for name, p in pair.items()}
    behind = compare(alone).data["models"][1]["behind"]
    assert behind["clear"]
    assert 0 < behind["low"] < behind["value"] < behind["high"]


def test_numbers_are_those_of_the_metrics(
    pair: dict[str, Predictions], data: dict[str, Any]
) -> None:
    t = tally(pair["weak"].confidence, pair["weak"].correct)
    assert data["models"][1]["metrics"]["aurc"]["value"] == aurc(t)


@pytest.mark.parametrize("name", ["auroc", "aupr_error", "aupr_success", "e_aurc"])
def test_what_would_mislead_is_withheld_with_the_reason(data: dict[str, Any], name: str) -> None:
    assert data["comparable"][name]["fair"] is False
    assert all(row["metrics"][name]["value"] is None for row in data["models"])
    assert "Ding et al. 2020, section 4.1" in data["models"][0]["metrics"][name]["why"]


def test_scores_of_one_model_may_be_compared_by_auroc(pair: dict[str, Predictions]) -> None:
    p = pair["weak"]
    found = compare({"max_prob": (p, "max_prob"), "energy": (p, "energy")}).data
    assert found["comparable"]["auroc"]["fair"] is True
    value = {row["name"]: row["metrics"]["auroc"]["value"] for row in found["models"]}
    assert value["max_prob"] == auroc(tally(p.confidence, p.correct))


def test_ids_join_rows_in_any_order(pair: dict[str, Predictions], data: dict[str, Any]) -> None:
    order = np.random.default_rng(1).permutation(600)
    found = compare({"weak": pair["weak"][order], "strong": pair["strong"]}).data
    assert found["models"][1]["behind"]["value"] == data["models"][1]["behind"]["value"]


def test_only_common_ids_are_compared_when_asked(pair: dict[str, Predictions]) -> None:
    some = {"weak": pair["weak"][:400], "strong": pair["strong"][100:]}
    with pytest.raises(InputError, match="only 300 ids are in all models"):
        compare(some)
    assert compare(some, common=True).data["n"] == 300


def test_other_labels_mean_other_samples() -> None:
    a = Predictions.from_probs([[0.9, 0.1], [0.2, 0.8]], [0, 1])
    b = Predictions.from_probs([[0.9, 0.1], [0.2, 0.8]], [1, 1])
    with pytest.raises(InputError, match="row 0 has label 0 in a and 1 in b"):
        compare({"a": a, "b": b})


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"a": Predictions.from_confidence([0.5], [1])}, "there is 1 model to compare"),
        (
            {
                "a": Predictions.from_confidence([0.5], [1]),
                "b": Predictions.from_confidence([0.5, 0.6], [1, 0]),
            },
            "a 1, b 2",
        ),
    ],
)
def test_what_cannot_be_compared_is_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        compare(given)


def test_the_worst_group_comes_first_and_is_marked(data: dict[str, Any]) -> None:
    first = data["slices"][0]
    assert first["group"] == "night"
    night = {s["model"]: s for s in data["slices"] if s["group"] == "night"}
    assert night["weak"]["worse"]
    assert not night["strong"]["worse"]


def test_groups_are_found_by_id_and_do_not_widen_the_intervals(
    pair: dict[str, Predictions],
) -> None:
    plain = {
        name: Predictions.from_logits(p.logits[0], p.labels, ids=p.ids) for name, p in pair.items()
    }
    table = dict(zip(range(600), pair["weak"].group.tolist(), strict=True))  # type: ignore[union-attr]
    found = compare(plain, by=table).data
    assert found["slices"][0]["group"] == "night"
    assert found["models"] == compare(plain).data["models"]
    with pytest.raises(InputError, match="by has no value for id 1"):
        compare(plain, by={0: "day"})


def test_limits_of_many_groups_are_wider() -> None:
    rng = np.random.default_rng(0)
    c = rng.uniform(0.5, 1, 400)
    p = {name: Predictions.from_confidence(c, rng.random(400) < c) for name in "ab"}
    two = compare(p, by=np.arange(400) % 2).data["slices"][0]
    forty = compare(p, by=np.where(np.arange(400) % 2, "odd", np.arange(400) % 80)).data["slices"]
    odd = next(s for s in forty if s["group"] == "odd" and s["model"] == two["model"])
    assert odd["n"] == two["n"] == 200
    assert odd["high"] - odd["low"] > two["high"] - two["low"]


def test_cost_names_who_is_beaten(data: dict[str, Any], pair: dict[str, Predictions]) -> None:
    assert [(c["name"], c["beaten_by"]["aurc"]) for c in data["cost"]] == [
        ("strong", None),
        ("weak", None),
    ]
    dear = compare(pair, cost={"weak": 3e6, "strong": 1e6}, cost_name="ece").data["cost"]
    assert [(c["name"], c["beaten_by"]["aurc"]) for c in dear] == [
        ("strong", None),
        ("weak", "strong"),
    ]
    assert [(c["cost"], c["beaten_by"]["ece"]) for c in dear] == [
        (1e6, None),
        (3e6, None),
    ]  # weak has the lower ECE


def test_who_is_beaten_by_hand() -> None:
    """b costs as much as a and is worse in both; c is dearest, worst by AURC and best by ECE; d has
    no ECE.
    """
    numbers = {"a": (0.1, 0.2), "b": (0.2, 0.3), "c": (0.3, 0.1), "d": (0.05, None)}
    rows = [
        {"name": n, "metrics": {"aurc": {"value": a}, "ece": {"value": e}, "amce": {"value": a}}}
        for n, (a, e) in numbers.items()
    ]
    priced = find_pareto_front(rows, {"a": 1, "b": 1, "c": 2, "d": 9})
    found = {c["name"]: {m: c["beaten_by"][m] for m in ("aurc", "ece")} for c in priced}
    assert [c["beaten_by"]["amce"] for c in priced] == [None, "a", "a", None]
    assert [c["mce"] for c in priced] == [None] * 4
    assert found["a"] == {"aurc": None, "ece": None}
    assert found["b"] == {"aurc": "a", "ece": "a"}
    assert found["c"] == {"aurc": "a", "ece": None}
    assert found["d"] == {"aurc": None, "ece": None}


def test_a_curve_that_rises_at_its_sure_end_is_found() -> None:
    """Of the most confident 2 % of "rises" a tenth is wrong, of the next a hundredth."""
    rng = np.random.default_rng(3)
    confidence = np.linspace(1, 0.5, 5000)
    falls = rng.random(5000) < confidence
    rises = np.ones(5000, dtype=bool)
    rises[:100:10] = rises[100::100] = False
    compared = compare(
        {
            "falls": Predictions.from_confidence(confidence, falls),
            "rises": Predictions.from_confidence(confidence, rises),
        }
    )
    (finding,) = compared.data["findings"]
    assert finding["text"].startswith(
        "rises: The most confident 2.0 % are wrong more often (10 of 100)"
    )
    assert finding["evidence"]["next_wrong"] == 4
    assert "rises at its sure end" in " ".join(compared.to_text().split())


def test_names_at_lines_leave_out_what_all_begin_with() -> None:
    assert shorten_names(["in1k_resnet34", "in1k_resnet101"]) == {
        "in1k_resnet34": "resnet34",
        "in1k_resnet101": "resnet101",
    }
    assert shorten_names(["net", "net-wide"]) == {"net": "net", "net-wide": "net-wide"}


def test_in_and_out_by_hand() -> None:
    """Home 0.9, 0.7, 0.5 (the last wrong), outside 0.8, 0.1; all home samples are kept at 0.5."""
    found = measure_separation(
        np.array([0.9, 0.7, 0.5]), np.array([0.8, 0.1]), np.array([True, True, False])
    )
    assert found["auroc"]["value"] == pytest.approx(4 / 6)
    assert found["fpr_at_95"]["value"] == 0.5
    assert found["fpr_at_95"]["low"] == pytest.approx(
        1 - 0.975**0.5
    )  # one of two, Clopper & Pearson
    assert found["mix_aurc"]["value"] == pytest.approx((0 + 1 / 2 + 1 / 3 + 2 / 4 + 3 / 5) / 5)
    assert found["mix_auroc"]["value"] == pytest.approx(5 / 6)


def test_shifted_and_outside_sets_stand_beside_the_home_set(pair: dict[str, Predictions]) -> None:
    rng = np.random.default_rng(2)
    noise = Predictions.from_logits(rng.normal(size=(100, 4)))
    y = rng.integers(0, 4, 200)
    fog = Predictions.from_logits(logits(rng, y, 1.0), y)
    found = compare(
        pair, shifted={"fog": {"strong": fog}}, outside={"noise": {"strong": noise}}
    ).data
    assert [(s["set"], s["model"]) for s in found["shifted"]] == [
        ("home", "weak"),
        ("home", "strong"),
        ("fog", "strong"),
    ]
    home, far = (found["shifted"][i]["metrics"]["accuracy"] for i in (1, 2))
    assert far["high"] < home["low"]
    assert found["outside"][0]["metrics"]["auroc"]["low"] > 0.8
    with pytest.raises(InputError, match="nobody is not among the models"):
        compare(pair, shifted={"fog": {"nobody": fog}})


def test_text_markdown_and_page_hold_the_ranking(pair: dict[str, Predictions]) -> None:
    found = compare(
        {
            "weak|<b>": replace(pair["weak"], group=None),
            "strong": replace(pair["strong"], group=None),
        }
    )
    assert "strong ranks best by AURC, significantly ahead of the other." in found.to_text()
    assert "weak\\|\\<b\\>" in found.to_markdown()
    assert "<b>" not in found.to_html()
    assert found._repr_html_().startswith("<iframe")


def densenet_m(preds: Predictions, m: int) -> Predictions:
    """The m least sure right answers become wrong (Ding et al. 2020, section 4.1)."""
    right = np.flatnonzero(preds.correct)
    correct = preds.correct.copy()
    correct[right[np.argsort(preds.confidence[right], kind="stable")[:m]]] = False
    return Predictions.from_confidence(preds.confidence, correct)


def test_dings_family_is_ordered_by_aurc_and_auroc_is_withheld(arrays: Any) -> None:
    """AUROC orders the family backwards."""
    a = arrays("netcal_wideresnet_16_4_c10")
    whole = Predictions.from_probs(a["test_probs"], a["test_labels"])
    family = {f"m = {m}": densenet_m(whole, m) for m in (150, 0, 50, 10)}
    found = compare(family).data
    assert [row["name"] for row in found["models"]] == ["m = 0", "m = 10", "m = 50", "m = 150"]
    assert not found["comparable"]["auroc"]["fair"]
    backwards = sorted(
        family, key=lambda name: auroc(tally(family[name].confidence, family[name].correct))
    )
    assert backwards == ["m = 0", "m = 10", "m = 50", "m = 150"]


def test_three_networks_on_cifar_10(arrays: Any) -> None:
    given: dict[str, Predictions] = {}
    for name, kind in (
        ("netcal_wideresnet_16_4_c10", "probs"),
        ("ak_resnet20_c10", "logits"),
        ("ak_resnet32_c10", "logits"),
    ):
        a = arrays(name)
        make = Predictions.from_probs if kind == "probs" else Predictions.from_logits
        given[name] = make(a[f"test_{kind}"], a["test_labels"], ids=a["test_idx"])
    found = compare(given)
    assert [row["name"] for row in found.data["models"]] == [
        "ak_resnet32_c10",
        "ak_resnet20_c10",
        "netcal_wideresnet_16_4_c10",
    ]
    behind = [row["behind"] for row in found.data["models"][1:]]
    assert [d["clear"] for d in behind] == [False, True]
    assert not found.data["same_answers"]


def test_slices_count_clusters_and_all_models() -> None:
    """A slice of few clusters has wider limits than its rows; limits of all groups and models hold
    together.
    """
    rng = np.random.default_rng(0)
    cluster = np.repeat(np.arange(30), 20)
    right = rng.random(600) < np.repeat(rng.beta(4, 1, 30), 20)
    site = np.where(cluster % 2, "north", "south")
    made = {
        name: {
            str(i): Predictions.from_confidence(
                np.full(600, 0.8), right, **({"group": cluster} if name else {})
            )
            for i in range(2)
        }
        for name in ("", "grouped")
    }
    rows = {name: compare(given, by=site).data["slices"] for name, given in made.items()}
    widths = {
        name: [(r["high"] or 0) - (r["low"] or 0) for r in found] for name, found in rows.items()
    }
    assert all(a < b for a, b in zip(widths[""], widths["grouped"], strict=True))
    low, high = clopper_pearson_interval(int(right[site == "north"].sum()), 300, 1 - 0.05 / 4)
    north = next(r for r in rows[""] if r["group"] == "north")
    assert (north["low"], north["high"]) == pytest.approx((low, high))


def test_identical_models_are_unchanged_and_said_to_be() -> None:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 200)
    preds = Predictions.from_logits(2 * np.eye(3)[y] + rng.normal(size=(200, 3)), y)
    compared = compare({"one": preds, "two": preds})
    for number in ("accuracy", "aurc", "ece"):
        difference = compared.data["pairs"][0][number]
        assert [difference[key] for key in ("value", "low", "high")] == [0, 0, 0]
    text = " ".join(compared.to_text().split())
    assert "one, two give the same answers with the same confidence." in text
    assert "+0" not in text
    assert compared.data["ties"] == []


def test_scores_of_one_model_are_not_called_models(pair: dict[str, Predictions]) -> None:
    preds = next(iter(pair.values()))
    text = compare({name: (preds, name) for name in ("max_prob", "entropy")}).to_text()
    assert text.startswith("2 scores on the same ")
    assert "May these scores be compared by it?" in text
    assert compare(pair).to_text().startswith("2 models on the same ")


def test_a_percent_sign_stays_with_its_number_on_pages_alone(pair: dict[str, Predictions]) -> None:
    report = evaluate(next(iter(pair.values())))
    verdict = report.to_html().split('<p class="verdict">')[1].split("</p>")[0]
    assert "\u00a0%" in verdict
    assert " %" not in verdict
    assert "\u00a0" not in report.to_text()


def test_an_equal_aurc_is_nobodys_lead() -> None:
    rng = np.random.default_rng(0)
    right = np.ones(60)
    models = {name: Predictions.from_confidence(rng.uniform(0.5, 1, 60), right) for name in "abc"}
    text = " ".join(compare(models).to_text().split())
    assert "a, b, c have the same AURC." in text
    assert "lowest" not in text


def test_a_tie_by_aurc_says_where_each_wins() -> None:
    """The second answers more rightly, the first orders better: neither has the clearly lower AURC."""
    rng = np.random.default_rng(1)
    n = 4000
    easy = rng.random(n)
    right = rng.random(n) < 0.75 + 0.2 * easy
    more = right | (rng.random(n) < 0.25)
    one = Predictions.from_confidence(np.clip(0.5 + 0.5 * easy, 0, 1), right)
    two = Predictions.from_confidence(np.clip(0.5 + 0.5 * rng.random(n), 0, 1), more)
    compared = compare({"one": one, "two": two})
    ties = {tie["metric"]: tie for tie in compared.data["ties"]}
    if compared.data["models"][1]["behind"]["clear"]:
        assert not ties
        pytest.fail("the models are told apart by AURC: this test needs a tie")
    assert ties["accuracy"]["better"] == "two"
    low, high = (ties["accuracy"]["difference"][end] for end in ("low", "high"))
    assert 0 < low < more.mean() - right.mean() < high
    size = f"{100 * (more.mean() - right.mean()):.1f} points"
    said = " ".join(compared.to_text().split())
    assert f"two is more accurate by {size}" in said
