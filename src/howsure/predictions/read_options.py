"""How a file of predictions is to be read, and what was taken for what when it was: values that can
be passed on and stored.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace
from typing import Literal, TypeAlias, cast

from howsure._core.checks import InputError
from howsure._core.frozen import frozen

Names: TypeAlias = Mapping[str, str | Sequence[str]]  # part → the column or columns that play it
NoAnswer: TypeAlias = Literal["apart", "wrong"]
Answers: TypeAlias = Literal["file", "argmax"]
Several: TypeAlias = Literal["parts", "ensemble"]

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
    "count",
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
    `image_score` puts pixels together to images with this score. `kind` is the part that must hold
    the values, such as `probs`: a policy stores it, so that nothing else is decided by it.
    `answers` says which count where a file's own answers are not the most probable ones. `several`
    says what several files are: parts of one data set, or members of an ensemble on the same rows.

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
    kind: str | None = None
    answers: Answers | None = None
    several: Several | None = None

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


# What values are called in a sentence.
VALUE_WORDS = {
    "logits": "logits",
    "mc_logits": "samples of logits",
    "probs": "probabilities",
    "mc_probs": "samples of probabilities",
    "logprobs": "log-probabilities of the options",
    "confidence": "confidence",
    "logprob": "log-probability of the answer",
    "samples": "confidence by agreement of the samples in",
}
VECTOR_PARTS = ("logits", "mc_logits", "probs", "mc_probs", "logprobs")
# Beside values and truth, what changes numbers and so is always told.
TOLD_PARTS = ("count", "weight", "group")
LISTED_COLUMNS = 3  # of a part; of more the first and the last are told
LISTED_UNUSED = 4


@frozen
class Receipt:
    """What was taken for what when a file was read.

    `kind` is the part that holds the values, and `columns` are the columns or arrays of each part,
    `kind` first. `unused` are columns that were left alone although their names tell something,
    with the option that uses them. `notes` are what was done to the numbers.

    >>> columns = {"confidence": ("p",), "prediction": ("said",), "labels": ("gold",)}
    >>> print(Receipt(rows=12_032, kind="confidence", columns=columns, unused={"n": "--name count=n"}))
    12,032 answers: confidence = 'p' (probability of being right), right = 'said' against 'gold'; not used: ...
    """

    rows: int
    kind: str
    columns: dict[str, tuple[str, ...]]
    classes: int | None = None
    unused: dict[str, str] = field(default_factory=dict[str, str])
    notes: tuple[str, ...] = ()
    of_class_1: bool = False  # two classes have one number, that of class 1
    multilabel: bool = False

    @property
    def right(self) -> str:
        """How it is known which answers are right; "" where it is not."""
        labels = _quote_columns(self.columns.get("labels", ()))
        if self.kind in VECTOR_PARTS:
            answer = "most probable class"
            if self.multilabel:
                answer = "each label above one half"
            return labels and f"{answer} against {labels}"
        if "correct" in self.columns:
            return _quote_columns(self.columns["correct"])
        if labels and "prediction" in self.columns:
            return f"{_quote_columns(self.columns['prediction'])} against {labels}"
        for part in ("grade", "loss"):
            if part in self.columns:
                return f"{part} {_quote_columns(self.columns[part])}"
        return ""

    def describe(self) -> str:
        """The parts in one sentence, without the number of rows."""
        values = f"{VALUE_WORDS.get(self.kind, self.kind)} = "
        if self.classes is not None and self.kind in VECTOR_PARTS:
            what = "classes"
            if self.multilabel:
                what = "labels"
            values = f"{VALUE_WORDS[self.kind]} of {self.classes:,} {what} = "
        values += _quote_columns(self.columns.get(self.kind, ()))
        if self.kind == "confidence":
            values += " (probability of being right)"
        elif self.of_class_1:
            values += " (of class 1)"
        told = [values]
        if self.right:
            told.append(f"right = {self.right}")
        for part in TOLD_PARTS:
            if part in self.columns:
                told.append(f"{part} = {_quote_columns(self.columns[part])}")
        sentences = [", ".join(told), *self.notes]
        if self.unused:
            listed = [f"{name!r} ({way})" for name, way in self.unused.items()]
            sentence = f"not used: {', '.join(listed[:LISTED_UNUSED])}"
            if len(listed) > LISTED_UNUSED:
                sentence += f" and {len(listed) - LISTED_UNUSED:,} more"
            sentences.append(sentence)
        return "; ".join(sentences)

    def __str__(self) -> str:
        what = "answers"
        if self.rows == 1:
            what = "answer"
        return f"{self.rows:,} {what}: {self.describe()}"


def _quote_columns(names: Sequence[str]) -> str:
    if len(names) > LISTED_COLUMNS:
        return f"{names[0]!r} … {names[-1]!r}"
    return ", ".join(map(repr, names))
