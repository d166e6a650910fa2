"""How a file of predictions is to be read, as one value that can be passed on and stored."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace
from typing import Literal, TypeAlias, cast

from howsure._core.checks import InputError
from howsure._core.frozen import frozen

Names: TypeAlias = Mapping[str, str | Sequence[str]]  # part → the column or columns that play it
NoAnswer: TypeAlias = Literal["apart", "wrong"]

# What a file may hold beside the values themselves.
PARTS_BESIDE_VALUES = (
    "labels",
    "correct",
    "prediction",
    "grade",
    "loss",
    "no_answer",
    "ids",
    "weight",
    "group",
    "images",
    "split",
)
# The same without everything that tells the truth: a decision must not depend on it.
UNLABELLED_PARTS = ("prediction", "no_answer", "ids", "group", "images", "split")


@frozen
class ReadOptions:
    """How a file is to be read: plain data, which `howsure.formats` interprets.

    `split`, `mc`, `names`, `attributes` choose what is read; `renormalise`, `percent`, `multilabel`
    and `sums_to_one` say what its numbers mean; `format`, `no_answer` and `drop_outside` are for
    logs of language models (see `howsure.read`). `beside` lists the parts that are loaded with the
    values. `narrow` keeps numbers of a text file as float32 or float16 where none of them changes.
    `image_score` puts pixels together to images with this score.

    >>> ReadOptions(split="test", names={"probs": ["cat", "dog"]}).names
    {'probs': ('cat', 'dog')}
    """

    split: str | None = None
    mc: bool = False
    names: Names = field(default_factory=dict[str, str])
    renormalise: bool = False
    format: str | None = None
    percent: bool = False
    no_answer: NoAnswer = "apart"
    drop_outside: bool = False
    multilabel: bool = False
    sums_to_one: bool = False
    beside: tuple[str, ...] = PARTS_BESIDE_VALUES
    attributes: tuple[str, ...] = ()
    narrow: bool = True
    image_score: str | None = None

    def __post_init__(self) -> None:
        # Lists become tuples, so that options read back from JSON equal those that were stored.
        names: dict[str, str | tuple[str, ...]] = {}
        # They may come from a file that somebody edited.
        for part, columns in cast("Mapping[str, object]", self.names).items():
            given = (columns,)
            if isinstance(columns, Iterable):
                given = tuple(cast("Iterable[object]", columns))
            listed = tuple(name for name in given if isinstance(name, str))
            if len(listed) < len(given):
                got = f"has {columns!r} for {part!r}"
                raise InputError("names", got=got, need="the name of a column, or several")
            names[part] = columns if isinstance(columns, str) else listed
        self.__dict__["names"] = names
        self.__dict__["beside"] = tuple(self.beside)
        self.__dict__["attributes"] = tuple(self.attributes)

    def __hash__(self) -> int:
        values = dict(self.__dict__, names=tuple(self.names.items()))
        return hash(tuple(values.values()))

    def get_column(self, part: str) -> str | None:
        """The one column that was named for a part."""
        columns = self.names.get(part)
        return columns if isinstance(columns, str) else None

    def with_names(self, **columns: str) -> ReadOptions:
        """The same with these columns for some parts."""
        return replace(self, names={**self.names, **columns})


def choose_options(options: ReadOptions | None, keywords: ReadOptions) -> ReadOptions:
    """Return `options` where they are given, else those made of keywords; raise if both are."""
    if options is None:
        return keywords
    if keywords != ReadOptions():
        got = "is given together with keywords that say how to read"
        raise InputError("options", got=got, hint="put all of them into ReadOptions")
    return options
