"""Which array or column of a file plays which part."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import field
from itertools import islice
from pathlib import Path
from typing import Literal, TypeAlias

from howsure._core.check import InputError
from howsure._core.frozen import frozen
from howsure.formats.contents import Contents
from howsure.formats.likely import proposal
from howsure.predictions.naming import ALIASES, MANY_LABELS, NUMBERED

Plan: TypeAlias = dict[str, tuple[str, ...]]  # part → names of the entries that play it
Names: TypeAlias = Mapping[str, str | Sequence[str]]  # part → names that the caller gave

SAMPLES = ("mc_logits", "mc_probs")
VECTORS = ("logits", "probs", "logprobs", *SAMPLES)  # parts with a number for each class
VALUES = ("logits", "probs", "logprobs", "confidence", "logprob", "samples")
NUMBERS = (*VECTORS, "confidence", "logprob", "weight", "correct", "grade", "loss")
CLASSES = "classes"  # among names: what the classes are called, in their order
PARTS = (*ALIASES, *SAMPLES, CLASSES)
NoAnswer: TypeAlias = Literal["apart", "wrong"]
BESIDE = (
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
UNLABELLED = (
    "prediction",
    "no_answer",
    "ids",
    "group",
    "images",
    "split",
)  # what a decision needs: nothing that tells the truth
BETWEEN = "_-. :/"  # between what columns have in common and the name of a class
ATTRIBUTE = "attribute "  # before the name of a further column
MANY = 1000  # names among which a similar one is looked for
_BY_ALIAS = {
    alias: (part, rank) for part, aliases in ALIASES.items() for rank, alias in enumerate(aliases)
}
_LONGEST = sorted(_BY_ALIAS, key=len, reverse=True)


@frozen
class Wanted:
    """How a file is read: what the caller asked for, and the parts beside the values that are
    loaded.

    `narrow` reads text whose numbers are all float32 (or float16) numbers as such.
    """

    split: str | None = None
    mc: bool = False
    names: Names = field(default_factory=dict[str, str])
    renormalise: bool = False
    format: str | None = None  # the tool that wrote a log
    percent: bool = False
    no_answer: NoAnswer = "apart"
    drop_outside: bool = False
    multilabel: bool = False  # many labels per case, 0 or 1 each ...
    sums_to_one: bool = False  # ... and rows that sum to 1 are meant
    beside: tuple[str, ...] = BESIDE
    attributes: tuple[str, ...] = ()  # further columns that are kept under their own names
    narrow: bool = True
    image_score: str | None = None  # pixels are put together to images with this score


def kind(plan: Plan, wanted: Wanted) -> str:
    """The part that holds the values: what was asked for, else the most informative one."""
    samples = [name for name in SAMPLES if name in plan]
    values = [name for name in VALUES if name in plan]
    named = [name for name in (*values, *samples) if name in wanted.names]
    return (named or (samples or values if wanted.mc else values or samples))[0]


def plan(contents: Contents, wanted: Wanted) -> Plan:
    """Names for every part that the file has; refuses when there are no values or when a split must
    be chosen.
    """
    given = _given(contents, wanted)
    by_split = _by_split(contents)
    chosen = _chosen(by_split, contents, wanted, given)
    many = _labels(contents) if wanted.multilabel and contents.table else {}
    found: Plan = {**_shared(by_split), **by_split.get(chosen, {}), **many, **given}
    if not _has_values(found):
        raise _nothing(contents, chosen)
    if wanted.mc and not any(part in found for part in SAMPLES):
        got = f"has no mc_logits or mc_probs{_of(chosen)} ({_there(contents)})"
        raise InputError(contents.path.name, got=got, hint="leave out mc")
    return found


def attributes(contents: Contents, wanted: Wanted) -> Plan:
    """The further columns that are wanted, which must be there."""
    return {
        f"{ATTRIBUTE}{name}": (_present(name, contents, wanted.split),)
        for name in wanted.attributes
    }


def parts_of(contents: Contents) -> dict[str, str]:
    """The part that each entry plays, over all splits."""
    return {
        n: part
        for parts in _by_split(contents).values()
        for part, names in parts.items()
        for n in names
    }


def plays(name: str, wanted: Wanted) -> bool:
    """Whether a column of a table plays a part."""
    plain = name.strip().lower()
    given = any(name in columns_named(names, (name,)) for names in wanted.names.values())
    of_many = wanted.multilabel and plain.startswith(MANY_LABELS)
    return _table_part(plain) is not None or plain.startswith(tuple(NUMBERED)) or of_many or given


def columns_named(names: str | Sequence[str], there: Collection[str]) -> tuple[str, ...]:
    """The columns that a caller names: one, several with commas between, or with a star all that
    begin alike.

    >>> columns_named("cat, dog", ["cat", "dog", "a,b"]), columns_named("p_*", ["p_cat", "id", "p_dog"])
    (('cat', 'dog'), ('p_cat', 'p_dog'))
    >>> columns_named("a,b", ["cat", "dog", "a,b"])
    ('a,b',)
    """
    if not isinstance(names, str):
        return tuple(names)
    if names in there:
        return (names,)
    if names.endswith("*"):
        return tuple(name for name in there if name.startswith(names[:-1]))
    return tuple(part.strip() for part in names.split(",") if part.strip())


def holds_numbers(name: str) -> bool:
    """Whether a column of a table holds numbers, by its name."""
    plain = name.strip().lower()
    part = _table_part(plain)
    return plain.startswith(tuple(NUMBERED)) or (part is not None and part[1] in NUMBERS)


def splits(contents: Contents) -> list[str]:
    """The splits of a file; "" stands for arrays without a prefix."""
    return [split for split, parts in _by_split(contents).items() if _has_values(parts)]


def column_name(part: str) -> str:
    """What a part is called in a table, where names are singular."""
    return {"labels": "label", "ids": "id"}.get(part, part)


def _has_values(parts: Plan) -> bool:
    return any(part in parts for part in (*VALUES, *SAMPLES))


def _by_split(contents: Contents) -> dict[str, Plan]:
    look = _table_part if contents.table else array_part
    found = [
        (known, name)
        for name in contents.entries
        if (known := look(name.strip().lower())) is not None
    ]
    out: dict[str, Plan] = {}
    for (split, part, _), name in sorted(
        found, key=lambda f: f[0][2]
    ):  # of several aliases the first counts
        out.setdefault(split, {}).setdefault(part, (name,))
    if contents.table and contents.numbered:
        out.setdefault("", {}).update(_numbered(contents))
    return dict(sorted(out.items()))


def _table_part(name: str) -> tuple[str, str, int] | None:
    if name in SAMPLES:
        return "", name, 0
    return ("", *_BY_ALIAS[name]) if name in _BY_ALIAS else None


def array_part(name: str) -> tuple[str, str, int] | None:
    """Split, part and rank among the aliases of an array name such as `test_logits` or
    `mc_test_logits`.
    """
    alias = next((a for a in _LONGEST if name == a or name.endswith("_" + a)), None)
    if alias is None:
        return None
    part, rank = _BY_ALIAS[alias]
    words = [word for word in name[: -len(alias)].split("_") if word]
    if "mc" in words and f"mc_{part}" in SAMPLES:
        words.remove("mc")
        part = f"mc_{part}"
    return "_".join(words), part, rank


def _numbered(contents: Contents) -> Plan:
    """The columns `logit_0, logit_1, …` or `prob_cat, prob_dog, …` of a table."""
    out: Plan = {}
    for prefix, part in NUMBERED.items():
        names = [n for n in contents.entries if n.strip().lower().startswith(prefix)]
        if names and part not in out:
            out[part] = _in_order(names, prefix, contents)
    return out


def _labels(contents: Contents) -> Plan:
    """The columns `label_0, label_1, …` or `label_cat, label_dog, …` of a table, in the order of
    the probabilities.
    """
    names = [n for n in contents.entries if n.strip().lower().startswith(MANY_LABELS)]
    if not names:
        return {}
    ends = {n.strip()[len(MANY_LABELS) :]: n for n in names}
    values = next(iter(_numbered(contents).values()), ())
    wanted = [n.strip().partition("_")[2] for n in values]
    if sorted(wanted) != sorted(ends):
        odd = sorted(set(wanted) ^ set(ends))
        got = f"has columns of values and of labels that do not belong together ({_listed(odd)})"
        raise InputError(
            contents.path.name, got=got, need="with many labels each prob_x has a label_x"
        )
    return {"labels": tuple(ends[end] for end in wanted)}


def _in_order(names: list[str], prefix: str, contents: Contents) -> tuple[str, ...]:
    """By number where all are numbered, else in the order of the file."""
    ends = [n.strip()[len(prefix) :] for n in names]
    if not all(e.isascii() and e.isdigit() and len(e) < 10 for e in ends):
        return tuple(names)
    numbers = sorted(int(e) for e in ends)
    if numbers == [0]:
        need = f"a binary model gives class 1 alone, {prefix}1"
        raise InputError(contents.path.name, got=f"has only {names[0]!r}", need=need)
    if numbers != list(range(len(numbers))) and numbers != [
        1
    ]:  # prob_1 alone is P(y=1) of a binary model
        missing = min(set(range(len(numbers) + 1)) - set(numbers))
        got = f"has {len(names)} columns {prefix}… but no {prefix}{missing} (or one twice)"
        raise InputError(
            contents.path.name, got=got, need="classes are numbered from 0 without gaps"
        )
    return tuple(name for _, name in sorted(zip(map(int, ends), names, strict=True)))


def given_classes(wanted: Wanted) -> tuple[str, ...] | None:
    """What the caller calls the classes, in the order of the values: "no,yes" or a list.

    >>> given_classes(Wanted(names={"classes": "no, yes"}))
    ('no', 'yes')
    """
    given = wanted.names.get(CLASSES)
    if given is None:
        return None
    found = tuple(name.strip() for name in (given.split(",") if isinstance(given, str) else given))
    if not all(found) or len(set(found)) < len(found):
        raise InputError(
            "classes", got=f"are {', '.join(map(repr, found))}", need="different names are needed"
        )
    return found


def class_names(names: tuple[str, ...]) -> tuple[str, ...] | None:
    """The classes that columns name, such as `prob_cat`, or `cat` itself; None where they are
    numbered.

    >>> class_names(("prob_cat", "prob_dog")), class_names(("p.no", "p.yes")), class_names(("x1", "x2"))
    (('cat', 'dog'), ('no', 'yes'), ('x1', 'x2'))
    """
    if len(names) < 2:
        return None
    plain = [n.strip() for n in names]
    known = next((p for p in NUMBERED if plain[0].lower().startswith(p)), None)
    start = len(known) if known else _common(plain)
    ends = tuple(n[start:] for n in plain)
    return None if all(e.isdigit() for e in ends) else ends if all(ends) else tuple(plain)


def _common(names: Sequence[str]) -> int:
    """How many letters all names begin with, up to the last sign between words."""
    same = next(
        (i for i, letters in enumerate(zip(*names, strict=False)) if len(set(letters)) > 1), 0
    )
    return max(names[0].rfind(sign, 0, same) for sign in BETWEEN) + 1


def _shared(by_split: dict[str, Plan]) -> Plan:
    """Arrays without a prefix serve the only split there is; class names serve every split."""
    plain = by_split.get("", {})
    with_values = [s for s, parts in by_split.items() if _has_values(parts)]
    if len(with_values) == 1:
        return plain
    return {part: names for part, names in plain.items() if part == "class_names"}


def _chosen(by_split: dict[str, Plan], contents: Contents, wanted: Wanted, given: Plan) -> str:
    there = [s for s, parts in by_split.items() if _has_values(parts)]
    if wanted.split is not None:
        if contents.table and "split" in by_split.get("", {}):
            return ""
        if contents.table and wanted.split != "":
            hint = f"leave out {wanted.split!r}"
            raise InputError(contents.path.name, got="is a table without a column split", hint=hint)
        if wanted.split in there or _has_values(given):
            return wanted.split
        raise no_split(wanted.split, there, contents.path)
    if len(there) > 1 and not _has_values(given):
        raise choose(contents.path, there)
    return there[0] if len(there) == 1 else ""


def choose(path: Path, there: list[str]) -> InputError:
    """What to say where there are several splits."""
    return InputError(
        path.name,
        got=f"has {len(there)} splits ({_listed(there)})",
        hint="choose one with split= (--split)",
    )


def no_split(split: str, there: list[str], path: Path) -> InputError:
    """What to say where a split is not there."""
    need = f"its splits are: {_listed(there) or 'none'}"
    return InputError(
        path.name, got=f"has no split {split!r}", need=need, hint=_meant(split, there)
    )


def _given(contents: Contents, wanted: Wanted) -> Plan:
    """The names that the caller gave, which must be there."""
    out: Plan = {}
    for part, value in wanted.names.items():
        if part not in PARTS:
            need = f"the parts are {', '.join(PARTS)}"
            raise InputError("names", got=f"has {part!r}", need=need, hint=_meant(part, PARTS))
        if part == CLASSES:
            continue
        out[part] = _columns_of(part, value, contents, wanted)
    return out


def _columns_of(
    part: str, value: str | Sequence[str], contents: Contents, wanted: Wanted
) -> tuple[str, ...]:
    names = tuple(
        _present(name, contents, wanted.split) for name in columns_named(value, contents.entries)
    )
    if not names and isinstance(value, str) and value.endswith("*"):
        raise InputError(
            contents.path.name,
            got=f"has nothing that begins with {value[:-1]!r}",
            need=_there(contents),
        )
    if not names:
        raise InputError(
            "names", got=f"gives nothing for {part!r}", hint="leave it out or name a column"
        )
    many = part in VECTORS or (part == "labels" and wanted.multilabel)
    if len(names) > 1 and not many:
        got = f"gives {len(names):,} columns for {part!r}"
        raise InputError(
            "names", got=got, need=f"one is needed; several go with {', '.join(VECTORS)}"
        )
    return (
        _in_order(list(names), value[:-1], contents)
        if isinstance(value, str) and value.endswith("*")
        else names
    )


def _present(name: str, contents: Contents, split: str | None) -> str:
    for candidate in (name, f"{split}_{name}"):
        if candidate in contents.entries:
            return candidate
    raise InputError(
        contents.path.name,
        got=f"has no {name!r}",
        need=_there(contents),
        hint=_meant(name, contents.entries),
    )


def _nothing(contents: Contents, split: str) -> InputError:
    wanted = "logit_0…, prob_0… or confidence" if contents.table else "logits, probs or confidence"
    got = f"has no {wanted}{_of(split)} ({_there(contents)})"
    if likely := proposal(contents):
        return InputError(contents.path.name, got=got, hint=likely)
    return InputError(
        contents.path.name,
        got=got,
        need="rename one, or say which is which with names={'probs': '…'} (--name probs=…)",
        hint=next(filter(None, (_meant(want, contents.entries) for want in VALUES)), ""),
    )


def _of(split: str) -> str:
    return f" of split {split!r}" if split else ""


def _there(contents: Contents) -> str:
    return f"it holds {_listed(list(contents.entries)) or 'nothing'}"


def _listed(names: list[str]) -> str:
    """The first twelve names, none of them longer than a word should be, and how many more there
    are.
    """
    shown = ", ".join(repr(n if len(n) <= 60 else f"{n[:57]}...") for n in names[:12])
    return shown + (f" and {len(names) - 12:,} more" if len(names) > 12 else "")


def _meant(name: str, known: Iterable[str]) -> str:
    close = difflib.get_close_matches(name, [n for n in islice(known, MANY) if len(n) <= 60], n=1)
    return f"Did you mean {close[0]!r}?" if close else ""
