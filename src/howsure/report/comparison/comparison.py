"""compare(): several models, scores or calibrators on the same samples, fairly."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import numpy as np

from howsure import curves
from howsure._core import json
from howsure._core.atomic import write_text
from howsure._core.check import Array, InputError
from howsure._core.frames import frame
from howsure._core.frozen import frozen
from howsure._core.progress import StagedJob
from howsure._core.version import __version__
from howsure.binning import equal_size
from howsure.predictions import Predictions
from howsure.render.model import (
    SCHEMA,
    ComparisonData,
    CurveData,
    Groups,
    SliceRow,
    comparison_data,
    curve_json,
)
from howsure.report.catalogue import Score, is_claim
from howsure.report.comparison import ranking, shift
from howsure.report.comparison import slices as parts
from howsure.report.comparison.models import Given, Model, models
from howsure.report.measurement import Sureness
from howsure.report.provenance import provenance
from howsure.report.report import metric_row

BINS = 15  # of the reliability curves


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
        return _written(json.pretty(self.data), path)

    def to_text(self, path: str | Path | None = None) -> str:
        """The tables that the command line prints."""
        from howsure.render.comparison import sheet

        return _written(sheet(self.data).text(), path)

    def to_markdown(self, path: str | Path | None = None) -> str:
        """The tables as Markdown."""
        from howsure.render.comparison import sheet

        return _written(sheet(self.data).markdown(), path)

    def to_html(self, path: str | Path | None = None) -> str:
        """The page: one offline file."""
        from howsure.render.comparison import page

        return _written(page(self.data), path)

    def frame(self, library: str = "pandas") -> Any:
        """All metrics of all models as a data frame of pandas or polars, one row each."""
        return frame(
            [
                metric_row(m, e) | {"model": r["name"]}
                for r in self.data["models"]
                for m, e in r["metrics"].items()
            ],
            library,
        )

    def _repr_html_(self) -> str:
        from howsure.render.html import frame

        return frame(self.to_html())

    @classmethod
    def from_json(cls, text: str) -> Comparison:
        """A comparison from its JSON text."""
        return cls(comparison_data(text))

    def __repr__(self) -> str:
        return f"<Comparison: {len(self.data['models'])} models, n={self.data['n']:,}, best {self.best}>"


def _written(text: str, path: str | Path | None) -> str:
    if path is not None:
        write_text(path, text)
    return text


def compare(
    given: Mapping[str, Given],
    *,
    score: Score = "max_prob",
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
    found = models(given, score, common=common)
    differences = ranking.paired(found, sure)
    job.stage("numbers")
    fair, rows = ranking.same_answers(found), ranking.table(found, differences, sure)
    job.stage("pictures")
    return Comparison(
        {
            "howsure": __version__,
            "schema": SCHEMA,
            "comparison": True,
            "provenance": {
                m.name: provenance(m.preds, (), command, seed=seed, level=level) for m in found
            },
            "n": found[0].preds.n,
            "level": level,
            "same_answers": fair,
            "comparable": ranking.comparable(rows, fair),
            "models": rows,
            "pairs": ranking.pairs(found, differences),
            "curves": {m.name: curve_json(curves.risk_coverage(m.tally)) for m in found},
            "reliability": _reliability(found),
            "cost": ranking.pareto(rows, cost) if cost else [],
            "cost_name": cost_name,
            "shifted": shift.shifted(found, shifted, score, level, seed) if shifted else [],
            "outside": shift.outside(found, outside, score, level, seed) if outside else [],
            "slices": _slices(found, by, level),
            "classes": parts.classes(found),
            **_groups(found),
        }
    )


def _groups(found: list[Model]) -> Groups:
    """The number of clusters, where samples come in clusters."""
    group = next((m.preds.group for m in found if m.preds.group is not None), None)
    return {} if group is None else {"groups": len(np.unique(group))}


def _reliability(found: list[Model]) -> dict[str, CurveData]:
    bins = equal_size(BINS)
    return {
        m.name: curve_json(curves.reliability(m.tally, bins)) for m in found if is_claim(m.tally)
    }


def _slices(found: list[Model], by: Any, level: float) -> list[SliceRow]:
    if by is None:
        return []
    if isinstance(by, Mapping):
        by = _looked_up(cast("Mapping[Any, Any]", by), found[0].preds.ids)
    if by is not True:
        return parts.slices(found, np.asarray(by), level)
    groups = [m.preds.group for m in found if m.preds.group is not None]
    if not groups:
        raise InputError("the predictions have no group to slice by; give by= a value per sample.")
    return parts.slices(found, np.asarray(groups[0]), level)


def _looked_up(by: Mapping[Any, Any], ids: Array | None) -> list[Any]:
    """The value of each sample."""
    if ids is None:
        raise InputError(
            "by is a table from id to value, but the predictions have no ids; give by= a value per sample."
        )
    missing = [i for i in np.asarray(ids).tolist() if i not in by]
    if missing:
        raise InputError(
            f"by has no value for id {missing[0]!r} ({len(missing):,} such ids); give one for each sample."
        )
    return [by[i] for i in np.asarray(ids).tolist()]
