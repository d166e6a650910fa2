"""Tables as people hand them over: what is taken, and what is refused in one sentence."""

from typing import Any

import numpy as np
import pytest

import howsure as hs
from howsure import InputError, Predictions

pd = pytest.importorskip("pandas")
N = 60
RNG = np.random.default_rng(0)
P = RNG.random(N)
Y = (RNG.random(N) < P).astype(int)
TEXT = np.where(Y == 1, "yes", "no")


def frame(**columns: Any) -> Any:
    return pd.DataFrame({"prob_no": 1 - P, "prob_yes": P, "label": TEXT, "site": "a", **columns})


def auc(table: Any, **named: Any) -> float:
    found = hs.evaluate(Predictions.from_frame(table, **named)).data["binary"]
    assert found is not None
    return found["numbers"]["class_auroc"]["value"]  # pyright: ignore[reportReturnType]


EXPECTED = hs.class_auroc(Predictions.from_probs(P, Y))
ALONE = {"probs": "prob_yes", "label": "label"}


@pytest.mark.parametrize(
    ("table", "named"),
    [
        (frame(), {}),
        (frame(label=pd.Categorical(TEXT)), {}),
        (frame(label=pd.Categorical(TEXT, categories=["yes", "no", "maybe"])), {}),
        (frame(label=Y == 1), ALONE),
        (frame(label=(Y == 1).astype(object)), ALONE),
        (frame(label=Y.astype(float)), ALONE),
        (frame(label=pd.array(Y, dtype="Int64")), ALONE),
        (frame(prob_yes=P.astype(object)), {}),
        (frame().set_index([np.arange(N) // 2, np.arange(N) % 2]), {}),
        (pd.concat([frame(), frame()[["site"]]], axis=1), {}),
        (pd.DataFrame({0: 1 - P, 1: P, "label": Y}), {"probs": [0, 1], "label": "label"}),
        (
            frame(),
            {"probs": ["prob_yes", "prob_no"], "label": "label", "class_names": ["yes", "no"]},
        ),
    ],
)
def test_taken(table: Any, named: dict[str, Any]) -> None:
    turned = (
        "class_names" in named
    )  # the positive class is the second one, here "no", with the same AUC
    assert auc(table, **named) == pytest.approx(EXPECTED, abs=0 if not turned else 1e-12)


def with_cell(column: str, value: object, row: int = 3) -> Any:
    table = frame()
    table[column] = table[column].astype(object)
    table.loc[row, column] = value
    return table


SWAPPED = {"probs": ["prob_yes", "prob_no"], "label": "label", "class_names": ["no", "yes"]}


@pytest.mark.parametrize(
    ("table", "named", "message"),
    [
        (
            with_cell("prob_yes", np.nan),
            {},
            r"column 'prob_yes' has 1 missing values \(first: row 3\)",
        ),
        (with_cell("label", None), {}, r"column 'label' has 1 missing values \(first: row 3\)"),
        (with_cell("label", pd.NA), {}, r"column 'label' has 1 missing values \(first: row 3\)"),
        (
            with_cell("label", "perhaps"),
            {},
            r"labels\[3\] is 'perhaps', which is none of the classes 'no', 'yes'",
        ),
        (
            with_cell("prob_yes", "high"),
            {},
            "column 'prob_yes' holds the text 'high' in row 3; numbers are needed",
        ),
        (frame(), SWAPPED, r"another order than the columns .*; write class_names=\['yes', 'no'\]"),
        (
            pd.concat([frame(), frame()[["label"]]], axis=1),
            {},
            "the table has 2 columns 'label'; one is needed",
        ),
        (
            frame(prob_no=100 - 100 * P, prob_yes=100 * P),
            {},
            "Are these percentages[?] Divide them by 100",
        ),
        (frame(prob_yes=100 * P, label=Y), ALONE, "Are these percentages[?] Divide them by 100"),
        (
            frame(),
            {"probs": "risk", "label": "label"},
            "the table has no column 'risk' for probs; it has 'prob_no'",
        ),
        (frame()[:0], {}, "probs is empty"),
        (frame(label=Y / 2), ALONE, r"labels\[\d+\] is 0.5; whole class numbers 0 to 1 are needed"),
    ],
)
def test_refused(table: Any, named: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Predictions.from_frame(table, **named)


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"positive": "ill"}, "no class is called 'ill'; they are no, yes"),
        ({"positive": 1.5}, "there is no class 1.5; a name or a whole number"),
        ({"thresholds": ["a"]}, "thresholds has dtype <U1; numbers are needed"),
        ({"thresholds": [1.2]}, "the threshold 1.2 is none; probabilities between 0 and 1"),
        ({"by": "hospital"}, "there is no column 'hospital'; there are 'site'"),
    ],
)
def test_questions_that_cannot_be_answered(asked: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        hs.evaluate(Predictions.from_frame(frame()), **asked)


def test_one_class_has_a_report_that_says_what_is_undefined() -> None:
    found = hs.evaluate(Predictions.from_frame(frame(label="yes"))).data["binary"]
    assert found is not None
    number = found["numbers"]["class_auroc"]
    assert number["value"] is None
    assert number["why"]


def test_polars() -> None:
    pl = pytest.importorskip("polars")
    table = pl.DataFrame({"prob_no": 1 - P, "prob_yes": P, "label": TEXT})
    assert auc(table) == auc(table.with_columns(pl.col("label").cast(pl.Categorical))) == EXPECTED
    with pytest.raises(InputError, match="a LazyFrame has no rows yet"):
        Predictions.from_frame(table.lazy())
    with pytest.raises(InputError, match=r"column 'label' has 1 missing values \(first: row 7\)"):
        Predictions.from_frame(
            table.with_columns(
                label=pl.Series([None if i == 7 else str(t) for i, t in enumerate(TEXT)])
            )
        )


def test_a_hundred_thousand_columns_take_no_square_of_time() -> None:
    many = {f"x{i}": [0.0] for i in range(100_000)}
    assert Predictions.from_frame({"risk": [0.5], "label": [1], **many}, probs="risk").n == 1


def test_what_a_classifier_objects_to_is_one_sentence() -> None:
    pytest.importorskip("sklearn")
    from sklearn.linear_model import LogisticRegression, Ridge

    from howsure.sklearn import CalibratedClassifier

    X = RNG.normal(size=(N, 2))
    model = LogisticRegression().fit(X, TEXT)
    with pytest.raises(InputError, match="LogisticRegression refuses X: X has 1 features"):
        Predictions.from_estimator(model, X[:, :1], TEXT)
    labels = TEXT.astype(object)
    labels[4] = None
    for made, y, message in (
        (CalibratedClassifier(model), labels, r"y has 1 missing values \(first: row 4\)"),
        (CalibratedClassifier(Ridge()), Y, "Ridge has neither predict_proba nor decision_function"),
        (
            CalibratedClassifier(model, cv="five"),
            TEXT,
            "cv is 'five'; a number of folds, a splitter",
        ),
        (CalibratedClassifier(model, ensemble="yes"), TEXT, "ensemble is 'yes'; True, False"),
    ):
        with pytest.raises(InputError, match=message):
            made.fit(X, y)
    with pytest.raises(ValueError, match="Negative values"):
        CalibratedClassifier(model).fit(X, TEXT, sample_weight=-np.ones(N))
