"""compare(): several models, scores or calibrators on the same samples, fairly."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from howsure import curves
from howsure._core import strict_json
from howsure._core.checks import Array, InputError
from howsure._core.checks import build_frame as frame
from howsure._core.frozen import frozen
from howsure._core.text import StagedJob
from howsure._core.version import __version__
from howsure.binning import equal_size
from howsure.predictions import Predictions
from howsure.report.catalogue import Score, is_claim
from howsure.report.leaderboard import (
    NO_PAIRS,
    ComparedModel,
    CountedModel,
    ModelInput,
    compare_net_benefits,
    compare_pairs,
    compare_unpaired,
    compute_outside_rows,
    compute_recall_rows,
    compute_shifted_rows,
    compute_slice_rows,
    explain_fairness,
    find_pareto_front,
    find_unsafe_tops,
    give_same_answers,
    join_models,
    list_pairs,
    list_ties,
    rank_models,
)
from howsure.report.measurement import Sureness
from howsure.report.report import build_metric_row, build_provenance, save_text
from howsure.report.report_types import (
    SCHEMA,
    ComparisonData,
    build_curve_data,
    parse_comparison,
)
from howsure.report.summary import Summary

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from howsure.report.render.pictures import Picture
    from howsure.report.result_table import ResultTable

RELIABILITY_BINS = 15


@frozen(eq=False)
class Comparison:
    """Several models on the same samples; `.data` is its JSON.

    >>> import howsure as hs
    >>> p = hs.Predictions.from_probs([[0.9, 0.1], [0.2, 0.8], [0.6, 0.4]], [0, 1, 1])
    >>> compare({"max_prob": (p, "max_prob"), "margin": (p, "margin")})
    <Comparison: 2 models, n=3, best max_prob>
    """

    data: ComparisonData

    @property
    def best(self) -> str:
        """The model with the lowest AURC."""
        return self.data["models"][0]["name"]

    def to_json(self, path: str | Path | None = None) -> str:
        """The comparison as strict JSON."""
        return save_text(strict_json.dump_pretty(self.data), path)

    def to_text(self, path: str | Path | None = None) -> str:
        """The tables that the command line prints."""
        from howsure.report.render.comparison_page import build_comparison_sheet

        return save_text(build_comparison_sheet(self.data).text(), path)

    def to_markdown(self, path: str | Path | None = None) -> str:
        """The tables as Markdown."""
        from howsure.report.render.comparison_page import build_comparison_sheet

        return save_text(build_comparison_sheet(self.data).markdown(), path)

    def to_html(self, path: str | Path | None = None) -> str:
        """The page: one offline file."""
        from howsure.report.render.comparison_page import render_comparison_page

        return save_text(render_comparison_page(self.data), path)

    def frame(self, library: str = "pandas") -> Any:
        """All metrics of all models as a data frame of pandas or polars, one row each."""
        rows: list[dict[str, Any]] = []
        for model in self.data["models"]:
            for name, entry in model["metrics"].items():
                rows.append(build_metric_row(name, entry) | {"model": model["name"]})
        return frame(rows, library)

    def table(self, metrics: Sequence[str] | None = None) -> ResultTable:
        """A wide table: a row for each model, a column for each of `metrics`, all unless given."""
        from howsure.report.result_table import build_comparison_table

        return build_comparison_table(self.data, metrics)

    def to_latex(self, path: str | Path | None = None) -> str:
        """The numbers of a paper's table as LaTeX; `table(metrics)` takes others."""
        from howsure.report.result_table import keep_paper_numbers

        return self.table(keep_paper_numbers(self.table().columns)).to_latex(path)

    def to_csv(self, path: str | Path | None = None) -> str:
        """All numbers with their limits, a row for each model."""
        return self.table().to_csv(path)

    def pictures(self) -> list[Picture]:
        """Every picture of the page."""
        from howsure.report.render.comparison_page import draw_comparison_pictures

        return draw_comparison_pictures(self.data)

    def figure(self, *names: str) -> Figure:
        """The main pictures of the page, or those of these names, as a matplotlib figure (extra
        `plot`).
        """
        from howsure.report.render.paper_figure import build_figure

        return build_figure(self.pictures(), names)

    def _repr_html_(self) -> str:
        from howsure.report.render.page import wrap_in_iframe as frame

        return frame(self.to_html())

    @classmethod
    def from_json(cls, text: str) -> Comparison:
        """A comparison from its JSON text."""
        return cls(parse_comparison(text))

    def __repr__(self) -> str:
        return f"<Comparison: {len(self.data['models'])} models, n={self.data['n']:,}, best {self.best}>"


def compare(
    given: Mapping[str, ModelInput],
    *,
    score: Score | None = None,
    by: Any = None,
    cost: Mapping[str, float] | None = None,
    cost_name: str = "cost",
    shifted: Mapping[str, Mapping[str, Predictions]] | None = None,
    outside: Mapping[str, Mapping[str, Predictions]] | None = None,
    common: bool = False,
    level: float = 0.95,
    seed: int = 0,
    command: str | None = None,
) -> Comparison:
    """Rank models, scores or calibrators by AURC with paired differences; what would be unfair is
    withheld.

    `given` maps names to predictions of the same samples, or to (predictions, score). They are
    joined by ids where all have them (`common=True`: on the ids that all share), else row by row.
    AUROC and AUPR of finding errors and E-AURC are shown only where all answers are the same. `by`
    is a value per sample to slice by, a table from id to value, or True for the predictions' own
    group, whose samples are also drawn together; `cost` a number per model; `shifted` and `outside`
    map the name of a further set to predictions by model, with labels and without. Ding et al.
    2020, section 4.1.

    >>> import howsure as hs
    >>> a = hs.Predictions.from_probs([[0.9, 0.1], [0.2, 0.8], [0.6, 0.4]], [0, 1, 1])
    >>> b = hs.Predictions.from_probs([[0.9, 0.1], [0.2, 0.8], [0.4, 0.6]], [0, 1, 1])
    >>> c = compare({"a": a, "b": b})
    >>> c.best, c.data["comparable"]["auroc"]["fair"]
    ('b', False)
    """
    sure = Sureness(level, seed).check()
    job = StagedJob("comparing", ["differences", "numbers", "pictures"])
    job.stage("differences")
    models = join_models(given, score, common=common)
    differences = compare_pairs(models, sure)
    job.stage("numbers")
    fair = give_same_answers(models)
    rows = rank_models(models, differences, fair, sure)
    job.stage("pictures")
    bins = equal_size(RELIABILITY_BINS)
    # Only claims in [0, 1] have a reliability curve.
    claims = [m for m in models if is_claim(m.tally, m.preds.kind)]
    data: ComparisonData = {
        "howsure": __version__,
        "schema": SCHEMA,
        "comparison": True,
        "provenance": {
            m.name: build_provenance(m.preds, (), command, seed=seed, level=level) for m in models
        },
        "n": models[0].preds.n,
        "level": level,
        "same_answers": fair,
        "comparable": explain_fairness(rows, fair),
        "models": rows,
        "pairs": list_pairs(models, differences),
        "ties": list_ties(models, rows, sure),
        "findings": find_unsafe_tops(models),
        "curves": {m.name: build_curve_data(curves.risk_coverage(m.tally)) for m in models},
        "reliability": {
            m.name: build_curve_data(curves.reliability(m.tally, bins)) for m in claims
        },
        "cost": find_pareto_front(rows, cost) if cost else [],
        "cost_name": cost_name,
        "shifted": compute_shifted_rows(models, shifted, score, sure) if shifted else [],
        "outside": compute_outside_rows(models, outside, score, sure) if outside else [],
        "slices": [] if by is None else compute_slice_rows(models, _find_slices(models, by), level),
        "classes": compute_recall_rows(models),
    }
    benefits = compare_net_benefits(models, rows, level)
    if benefits:
        data["net_benefit"] = benefits
    group = _find_group(models)
    if group is not None:
        data["groups"] = len(np.unique(group))
    return Comparison(data)


def compare_counts(
    given: Mapping[str, Summary],
    *,
    level: float = 0.95,
    seed: int = 0,
    command: str | None = None,
) -> Comparison:
    """Rank models of which only counts are known: nothing says which answers are to the same sample,
    so limits of differences are those of independent samples.

    >>> from howsure import tally
    >>> a, b = (Summary.of_tally(tally([0.9, 0.6], correct=[1, 0], count=c)) for c in ([8, 2], [7, 3]))
    >>> compare_counts({"a": a, "b": b}).best
    'a'
    """
    sure = Sureness(level, seed).check()
    sizes = {name: summary.n for name, summary in given.items()}
    if len(set(sizes.values())) > 1:
        listed = ", ".join(f"{name} {n:,}" for name, n in sizes.items())
        raise InputError(f"these are not the same samples ({listed}); evaluate them separately.")
    models = [CountedModel(name=name, samples=summary) for name, summary in given.items()]
    differences = compare_unpaired(models, sure)
    rows = rank_models(models, differences, False, sure)
    bins = equal_size(RELIABILITY_BINS)
    claims = [m for m in models if is_claim(m.tally, m.preds.kind)]
    data: ComparisonData = {
        "howsure": __version__,
        "schema": SCHEMA,
        "comparison": True,
        "provenance": {
            m.name: build_provenance(m.tally, (), command, seed=seed, level=level) for m in models
        },
        "n": models[0].samples.n,
        "unpaired": NO_PAIRS,
        "level": level,
        "same_answers": False,
        "comparable": explain_fairness(rows, False),
        "models": rows,
        "pairs": list_pairs(models, differences),
        "findings": find_unsafe_tops(models),
        "curves": {m.name: build_curve_data(curves.risk_coverage(m.tally)) for m in models},
        "reliability": {
            m.name: build_curve_data(curves.reliability(m.tally, bins)) for m in claims
        },
        "cost": [],
        "cost_name": "cost",
        "shifted": [],
        "outside": [],
        "slices": [],
        "classes": [],
    }
    return Comparison(data)


def _find_group(models: list[ComparedModel]) -> Array | None:
    """The clusters that samples come in, where some model knows them."""
    for model in models:
        if model.preds.group is not None:
            return model.preds.group
    return None


def _find_slices(models: list[ComparedModel], by: Any) -> Array:
    """The value of each sample to slice by."""
    if by is True:
        group = _find_group(models)
        if group is None:
            raise InputError(
                "the predictions have no group to slice by; give by= a value per sample."
            )
        return np.asarray(group)
    if not isinstance(by, Mapping):
        return np.asarray(by)
    table = cast("Mapping[Any, Any]", by)
    if models[0].preds.ids is None:
        raise InputError(
            "by is a table from id to value, but the predictions have no ids; give by= a value per sample."
        )
    ids = np.asarray(models[0].preds.ids).tolist()
    missing = [i for i in ids if i not in table]
    if missing:
        raise InputError(
            f"by has no value for id {missing[0]!r} ({len(missing):,} such ids); give one for each sample."
        )
    return np.asarray([table[i] for i in ids])
