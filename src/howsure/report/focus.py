"""Which class and which columns a report looks at: the positive class, and slices of a column."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from numpy.typing import ArrayLike

from howsure._core.checks import InputError
from howsure._core.frozen import frozen
from howsure.predictions import Predictions
from howsure.predictions.images import IMAGE_SCORES
from howsure.predictions.segments import Cut

LOSSES = ("top-5", "dice", "dice-pixels")
By = str | Sequence[str] | Mapping[str, ArrayLike]


@frozen
class Focus:
    """The class that counts as positive (None: class 1 of two), the columns that are cut into
    slices, and what counts as wrong: with `loss="dice"` images beside their pixels.
    """

    positive: str | int | None = None
    by: tuple[Cut, ...] = ()
    loss: str | None = None
    image_score: str | None = None  # a column, or the name of a score of images, that comes first

    def __post_init__(self) -> None:
        if self.loss not in (None, *LOSSES):
            raise InputError(
                f"loss is {self.loss!r}; {', '.join(LOSSES)} (what counts as wrong) or nothing is needed."
            )
        if self.image_score is not None and self.loss != "dice":
            raise InputError(
                "a score of images is given without images; say loss='dice' (--loss dice) too."
            )

    @classmethod
    def of(
        cls,
        positive: str | int | None,
        by: Iterable[str],
        loss: str | None = None,
        image_score: str | None = None,
    ) -> Focus:
        """From what a caller wrote."""
        cuts = tuple(Cut.of(text) for text in dict.fromkeys(by))
        return cls(positive=positive, by=cuts, loss=loss, image_score=image_score)

    @property
    def columns(self) -> list[str]:
        """Columns beside the predictions that are needed."""
        needed = [cut.column for cut in self.by]
        if self.image_score is not None and self.image_score not in IMAGE_SCORES:
            needed.append(self.image_score)
        return list(dict.fromkeys(needed))

    def streamed(self) -> Focus:
        """Return self; raise if something needs all samples before any of them is counted."""
        if self.loss in ("top-5", "dice-pixels"):
            raise InputError(
                f"loss {self.loss} needs all predictions at once; leave out the options of a stream."
            )
        for cut in self.by:
            if cut.bins is not None:
                raise InputError(
                    "bins of equal size need all samples at once; for a stream give the edges, "
                    f"as in {cut.column}:40,60."
                )
        return self


WHOLE = Focus()


def attach_slices(preds: Predictions, by: By | None) -> tuple[Predictions, tuple[Cut, ...]]:
    """Predictions that hold the columns of `by`, and how these are cut."""
    if by is None:
        return preds, ()
    if isinstance(by, Mapping):
        preds = preds.with_attributes(by)
    texts = [by] if isinstance(by, str) else [str(text) for text in by]
    known = preds.attributes or {}
    # The name of a column that is there is taken as it is, even if it looks like "age:4".
    cuts = [Cut(text) if text in known else Cut.of(text) for text in dict.fromkeys(texts)]
    return preds, tuple(cuts)
