"""How a file of predictions is to be read, and what was taken for what when it was: values that can
be passed on and stored.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field as make_field
from dataclasses import replace
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
BOUNDARY_DISTANCE = (
    "boundary_distance"  # a further column that ranks answers, taken where it is there
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
    `where` chooses the rows with these values of columns. Of a log of a decision model `question` is
    the question that is read, `tolerance` how many levels a score may be off, and `case` what answers
    belong together, "record" or a column.

    >>> ReadOptions(split="test", names={"probs": ["cat", "dog"]}).names
    {'probs': ('cat', 'dog')}
    """

    split: str | None = None
    mc: bool = False
    names: Names = make_field(default_factory=dict[str, str])
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
    where: Mapping[str, str] = make_field(default_factory=dict[str, str])
    question: str | None = None
    tolerance: int | None = None
    case: str | None = None

    def __post_init__(self) -> None:
        # Lists become tuples, so that options read back from JSON equal those that were stored.
        names: dict[str, str | tuple[str, ...]] = {}
        # They may come from a file that somebody edited.
        for part, columns in cast("Mapping[str, object]", self.names).items():
            given = (columns,)
            if getattr(columns, "ndim", 1) and isinstance(columns, Iterable):
                given = tuple(cast("Iterable[object]", columns))
            listed = tuple(name for name in given if isinstance(name, str))
            if len(listed) < len(given):
                got = f"has {columns!r} for {part!r}"
                raise InputError("names", got=got, need="the name of a column, or several")
            names[part] = columns if isinstance(columns, str) else listed
        self.__dict__["names"] = names
        self.__dict__["beside"] = tuple(self.beside)
        self.__dict__["attributes"] = tuple(self.attributes)
        self.__dict__["where"] = {str(name): str(value) for name, value in self.where.items()}

    def __hash__(self) -> int:
        pairs = {"names": tuple(self.names.items()), "where": tuple(self.where.items())}
        values = {**self.__dict__, **pairs}
        return hash(tuple(values.values()))

    def get_column(self, part: str) -> str | None:
        """The one column that was named for a part."""
        columns = self.names.get(part)
        return columns if isinstance(columns, str) else None

    def leave_out(self, part: str) -> ReadOptions:
        """The same without a part that stands beside the values.

        >>> "weight" in ReadOptions().leave_out("weight").beside
        False
        """
        beside = tuple(one for one in self.beside if one != part)
        names = {one: columns for one, columns in self.names.items() if one != part}
        return replace(self, beside=beside, names=names)

    def read_values_like(self, stored: ReadOptions | None) -> ReadOptions:
        """The same with what `stored` says of the values, where nothing is said here.

        >>> fitted = ReadOptions(names={"probs": "p_*", "labels": "gold"}, kind="probs", percent=True)
        >>> options = ReadOptions(names={"labels": "y"}).read_values_like(fitted)
        >>> options.names, options.kind
        ({'probs': 'p_*', 'labels': 'y'}, 'probs')
        """
        if stored is None:
            return self
        names: dict[str, str | Sequence[str]] = {}
        if not set(self.names) & set(VALUE_WORDS):  # another kind by name is told apart later
            names = {part: name for part, name in stored.names.items() if part in VALUE_NAMES}
        fields = {name: getattr(self, name) or getattr(stored, name) for name in VALUE_OPTIONS}
        return replace(self, names={**names, **self.names}, kind=stored.kind, **fields)

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
    "score": "score",
    "logprob": "log-probability of the answer",
    "samples": "confidence by agreement of the samples in",
}
VALUE_NAMES = (*VALUE_WORDS, "classes")
# Options that say what numbers mean; none is given by default.
VALUE_OPTIONS = ("mc", "renormalise", "percent", "multilabel", "sums_to_one", "answers")
VECTOR_PARTS = ("logits", "mc_logits", "probs", "mc_probs", "logprobs")
# Beside values and truth, what changes numbers and so is always told.
TOLD_PARTS = ("count", "weight", "group")
LISTED_COLUMNS = 3  # of a part; of more the first and the last are told
LISTED_UNUSED = 4
CELLS_NOTE = "cells of several scores are known by their mean"  # of a count table


@frozen
class Asked:
    """Which models answered which questions of a decision model's log: a policy holds for these.

    A question has its type, the field that a gateway compares, and a hash of its text and options.
    """

    models: tuple[str, ...] = ()
    questions: dict[str, tuple[str, ...]] = make_field(default_factory=dict[str, tuple[str, ...]])

    def list_changes(self, now: Asked, made: str = "the policy was made for") -> list[str]:
        """What is different now, in words; `made` says what these are of.

        >>> Asked(("m-1",)).list_changes(Asked(("m-2",)))
        ["the model is 'm-2', the policy was made for 'm-1'"]
        """
        changes: list[str] = []
        other = sorted(set(now.models) - set(self.models))
        if self.models and other:
            ours = ", ".join(map(repr, self.models))
            changes.append(f"the model is {', '.join(map(repr, other))}, {made} {ours}")
        for name, facts in now.questions.items():
            if name not in self.questions:
                changes.append(f"question {name!r} is new")
            elif facts != self.questions[name]:
                changes.append(f"question {name!r} has another type, text or options")
        for name in self.questions:
            if name not in now.questions:
                changes.append(f"question {name!r} is not asked")
        return changes


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
    unused: dict[str, str] = make_field(default_factory=dict[str, str])
    notes: tuple[str, ...] = ()
    of_class_1: bool = False  # two classes have one number, that of class 1
    multilabel: bool = False
    own_answers: bool = False  # those of the file count, not the most probable classes
    asked: Asked | None = None  # of a decision model's log
    field: bool = False  # its confidence is a field as given, not a probability of being right

    @property
    def right(self) -> str:
        """How it is known which answers are right; "" where it is not."""
        labels = quote_columns(self.columns.get("labels", ()))
        if self.kind in VECTOR_PARTS:
            answer = "most probable class"
            if self.multilabel:
                answer = "each label above one half"
            elif self.own_answers and "prediction" in self.columns:
                answer = quote_columns(self.columns["prediction"])
            return labels and f"{answer} against {labels}"
        if "correct" in self.columns:
            return quote_columns(self.columns["correct"])
        if labels and "prediction" in self.columns:
            return f"{quote_columns(self.columns['prediction'])} against {labels}"
        for part in ("grade", "loss"):
            if part in self.columns:
                return f"{part} {quote_columns(self.columns[part])}"
        return ""

    def describe(self) -> str:
        """The parts in one sentence, without the number of rows."""
        values = f"{VALUE_WORDS.get(self.kind, self.kind)} = "
        if self.classes is not None and self.kind in VECTOR_PARTS:
            what = "classes"
            if self.multilabel:
                what = "labels"
            values = f"{VALUE_WORDS[self.kind]} of {self.classes:,} {what} = "
        values += quote_columns(self.columns.get(self.kind, ()))
        if self.kind == "confidence" and self.field:
            values += " (the field that a gateway compares)"
        elif self.kind == "confidence":
            values += " (probability of being right)"
        elif self.kind == "score":
            values += " (no probability; higher = surer)"
        elif self.of_class_1:
            values += " (of class 1)"
        told = [values]
        if self.right:
            told.append(f"right = {self.right}")
        for part in TOLD_PARTS:
            if part in self.columns:
                told.append(f"{part} = {quote_columns(self.columns[part])}")
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


def quote_columns(names: Sequence[str]) -> str:
    """Names in a sentence: of many the first and the last.

    >>> quote_columns(["cat", "dog"]), quote_columns(["p_0", "p_1", "p_2", "p_3"])
    ("'cat', 'dog'", "'p_0' … 'p_3'")
    """
    if len(names) > LISTED_COLUMNS:
        return f"{names[0]!r} … {names[-1]!r}"
    return ", ".join(map(repr, names))
