"""Which array or column of a file plays which part: logits, labels, ids, …; and where their names
say nothing, what they may be.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Iterable, Sequence
from itertools import islice
from pathlib import Path
from shlex import quote
from typing import TypeAlias

import numpy as np

from howsure._core.checks import Floats, InputError
from howsure._core.frozen import frozen
from howsure.formats.cells import replace_commas_of_numbers
from howsure.formats.contents import Contents, FileEntry
from howsure.predictions.class_labels import (
    CLASS_COLUMN_STARTS,
    COLUMN_ALIASES,
    LABEL_COLUMN_START,
    UNSURE_ALIAS,
    is_one_of_two,
)
from howsure.predictions.given_answers import TELLING_ANSWERS
from howsure.predictions.read_options import BOUNDARY_DISTANCE, VALUE_WORDS, ReadOptions

Plan: TypeAlias = dict[str, tuple[str, ...]]  # part → names of the entries that play it

SAMPLES = ("mc_logits", "mc_probs")
VECTORS = ("logits", "probs", "logprobs", *SAMPLES)  # parts with a number for each class
VALUES = ("logits", "probs", "logprobs", "confidence", "logprob", "samples", "score")
TOP_ANSWER_VALUES = ("confidence", "logprob", "score")  # one number per row
NUMBERS = (*VECTORS, *TOP_ANSWER_VALUES, "weight", "count", "correct", "grade", "loss")
CLASSES = "classes"  # among names: what the classes are called, in their order
PARTS = (*COLUMN_ALIASES, *SAMPLES, CLASSES)
CLASS_LIST = "names"  # an array with as many texts as there are classes
TEXT_DTYPES = ("<U", "|S", "str", "text", "object")  # how the names of these types begin
ATTRIBUTE = "attribute "  # before the name of a further column
CELL_ENDS = ("score_low", "score_high")  # of a count table whose cells hold several scores
WORD_SEPARATORS = "_-. :/"  # between what columns have in common and the name of a class
COMPARED_NAMES = 1000  # names among which a similar one is looked for
LISTED_NAMES = 12
NAME_LETTERS = 60

_PART_BY_ALIAS: dict[str, tuple[str, int]] = {}  # alias → part, and its rank among the aliases
for _part, _aliases in COLUMN_ALIASES.items():
    for _rank, _alias in enumerate(_aliases):
        _PART_BY_ALIAS[_alias] = (_part, _rank)
_ALIASES_BY_LENGTH = sorted(_PART_BY_ALIAS, key=len, reverse=True)


def plan_parts(contents: Contents, options: ReadOptions) -> Plan:
    """Names for every part that the file has; refuses when there are no values or when a split must
    be chosen.
    """
    given = _plan_given_names(contents, options)
    by_split = _plan_splits(contents)
    split = _choose_split(by_split, contents, options, given)
    plan = dict(by_split.get("", {}))
    # Arrays without a prefix serve the only split there is; class names serve every split.
    if sum(map(_has_values, by_split.values())) != 1:
        plan = {part: names for part, names in plan.items() if part == "class_names"}
    plan |= by_split.get(split, {})
    if options.multilabel and contents.table:
        plan |= _plan_label_columns(contents)
    # A column that was named for one part plays no other.
    taken = {name for names in given.values() for name in names}
    plan = {part: names for part, names in plan.items() if not taken & set(names)} | given
    if not _has_values(plan):
        parts = "logits, probs or confidence"
        if contents.table:
            parts = "logit_0…, prob_0… or confidence"
        got = f"has no {parts}{_describe_split(split)} ({_describe_entries(contents)})"
        hint = suggest_names(contents)
        need = ""
        if not hint:
            need = "rename one, or say which is which with names={'probs': '…'} (--name probs=…)"
            similar = (_suggest_similar(part, contents.entries) for part in VALUES)
            hint = next(filter(None, similar), "")
        raise InputError(contents.path.name, got=got, need=need, hint=hint)
    if not contents.table and "class_names" not in plan and CLASS_LIST in contents.entries:
        listed = contents.entries[CLASS_LIST]
        values = contents.entries[plan[choose_values(plan, options)][0]]
        if listed.dtype.startswith(TEXT_DTYPES) and listed.shape == values.shape[1:2]:
            plan["class_names"] = (CLASS_LIST,)
    if options.mc and not any(part in plan for part in SAMPLES):
        lacking = f"has no mc_logits or mc_probs{_describe_split(split)}"
        got = f"{lacking} ({_describe_entries(contents)})"
        raise InputError(contents.path.name, got=got, hint="leave out mc")
    return plan


def choose_values(plan: Plan, options: ReadOptions) -> str:
    """The part that holds the values: what was asked for, else the most informative one."""
    samples = [part for part in SAMPLES if part in plan]
    values = [part for part in VALUES if part in plan]
    named = [part for part in (*values, *samples) if part in options.names]
    if named:
        chosen = named[0]
    elif options.kind in plan:
        chosen = options.kind
    elif options.mc:
        chosen = (samples or values)[0]
    else:
        chosen = (values or samples)[0]
    if options.kind not in (None, chosen):
        held = f"{VALUE_WORDS[chosen]} ({_list_names(list(plan[chosen]))})"
        raise InputError(
            "the rows",
            got=f"hold {held}",
            need=f"the policy or calibrator was fitted on {VALUE_WORDS.get(options.kind, options.kind)}",
            hint="fit one on such numbers with howsure threshold or howsure calibrate",
        )
    return chosen


def plan_wanted(contents: Contents, options: ReadOptions) -> tuple[str, Plan]:
    """The part that holds the values, and all that is loaded, the values first."""
    plan = plan_parts(contents, options)
    kind = choose_values(plan, options)
    wanted: Plan = {}
    for part in (kind, *options.beside, "class_names"):
        # Arrays have splits by name; a table has a column of them.
        if part in plan and (part != "split" or contents.table):
            wanted[part] = plan[part]
    return kind, wanted | plan_attributes(contents, options)


def plan_attributes(contents: Contents, options: ReadOptions) -> Plan:
    """The further columns that are wanted, which must be there; but for the distance to the
    decision boundary, which few files hold.
    """
    plan: Plan = {}
    for name in options.attributes:
        try:
            plan[f"{ATTRIBUTE}{name}"] = (_find_entry(name, contents, options.split),)
        except InputError as e:
            if name == BOUNDARY_DISTANCE:
                continue
            if name != "second_opinion":
                raise
            raise InputError(
                f"{e} It must hold the other model's probability of each answer."
            ) from None
    return plan


def find_parts(contents: Contents) -> dict[str, str]:
    """The part that each entry plays, over all splits."""
    parts: dict[str, str] = {}
    for plan in _plan_splits(contents).values():
        for part, names in plan.items():
            parts |= dict.fromkeys(names, part)
    return parts


def list_splits(contents: Contents) -> list[str]:
    """The splits of a file; "" stands for arrays without a prefix."""
    return [split for split, plan in _plan_splits(contents).items() if _has_values(plan)]


def has_part(name: str, options: ReadOptions) -> bool:
    """Whether a column of a table plays a part."""
    plain = name.strip().lower()
    if _find_table_part(plain) is not None or plain.startswith(tuple(CLASS_COLUMN_STARTS)):
        return True
    if options.multilabel and plain.startswith(LABEL_COLUMN_START):
        return True
    return any(name in expand_names(names, (name,)) for names in options.names.values())


def is_numeric(name: str) -> bool:
    """Whether a column of a table holds numbers, by its name."""
    plain = name.strip().lower()
    part = _find_table_part(plain)
    if part is None:
        return plain.startswith(tuple(CLASS_COLUMN_STARTS))
    return part[1] in NUMBERS


def name_column(part: str) -> str:
    """What a part is called in a table, where names are singular."""
    return {"labels": "label", "ids": "id"}.get(part, part)


def expand_names(names: str | Sequence[str], there: Collection[str]) -> tuple[str, ...]:
    """The columns that a caller names: one, several with commas between, or with a star all that
    begin alike.

    >>> expand_names("cat, dog", ["cat", "dog", "a,b"])
    ('cat', 'dog')
    >>> expand_names("p_*", ["p_cat", "id", "p_dog"]), expand_names("a,b", ["cat", "dog", "a,b"])
    (('p_cat', 'p_dog'), ('a,b',))
    """
    if not isinstance(names, str):
        return tuple(names)
    if names in there:
        return (names,)
    if names.endswith("*"):
        return tuple(name for name in there if name.startswith(names[:-1]))
    return tuple(part.strip() for part in names.split(",") if part.strip())


# The names of the convention


def _plan_splits(contents: Contents) -> dict[str, Plan]:
    """Split → part → names, by the convention alone."""
    find_part = _find_table_part if contents.table else find_array_part
    ranked: list[tuple[int, str, str, str]] = []
    for name in contents.entries:
        known = find_part(name.strip().lower())
        if known is not None:
            split, part, rank = known
            # A matrix of predictions holds a number for each class, as Keras and others call it.
            if part == "prediction" and len(contents.entries[name].shape) == 2:
                part, rank = "probs", len(COLUMN_ALIASES["probs"])
            ranked.append((rank, split, part, name))
    plans: dict[str, Plan] = {}
    # Of several aliases the first counts; of equal ones the first in the file.
    for _, split, part, name in sorted(ranked, key=lambda entry: entry[0]):
        plans.setdefault(split, {}).setdefault(part, (name,))
    for plan in plans.values():
        # Beside an answer it may be how sure that is, or the probability of class 1: nobody knows.
        if "prediction" in plan and plan.get("probs", ("",))[0].strip().lower().endswith(
            UNSURE_ALIAS
        ):
            del plan["probs"]
    if contents.table and contents.numbered:
        plans.setdefault("", {}).update(_plan_class_columns(contents))
    return dict(sorted(plans.items()))


def _find_table_part(name: str) -> tuple[str, str, int] | None:
    if name in SAMPLES:
        return "", name, 0
    if name in _PART_BY_ALIAS:
        part, rank = _PART_BY_ALIAS[name]
        return "", part, rank
    return None


def find_array_part(name: str) -> tuple[str, str, int] | None:
    """Split, part and rank among the aliases of an array name such as `test_logits` or
    `mc_test_logits`.
    """
    # The longest alias counts: test_true_label is true_label of test, not label of test_true.
    for alias in _ALIASES_BY_LENGTH:
        if name == alias or name.endswith(f"_{alias}"):
            break
    else:
        return None
    part, rank = _PART_BY_ALIAS[alias]
    words = [word for word in name[: -len(alias)].split("_") if word]
    if "mc" in words and f"mc_{part}" in SAMPLES:
        words.remove("mc")
        part = f"mc_{part}"
    return "_".join(words), part, rank


def _plan_class_columns(contents: Contents) -> Plan:
    """The columns `logit_0, logit_1, …` or `prob_cat, prob_dog, …` of a table."""
    plan: Plan = {}
    for prefix, part in CLASS_COLUMN_STARTS.items():
        names: list[str] = []
        for name in contents.entries:
            plain = name.strip().lower()
            if plain.startswith(prefix) and plain not in _PART_BY_ALIAS:
                names.append(name)
        if not names or part in plan:
            continue
        end = names[0].strip()[len(prefix) :]
        fits = len(names) > 1 or is_one_of_two(end, ())
        for name in contents.entries:
            known = _find_table_part(name.strip().lower())
            if not fits and known is not None and known[1] == "labels":
                fits = is_one_of_two(end, list_texts(contents.entries[name]))
        if fits:
            plan[part] = _order_by_number(names, prefix, contents)
    return plan


def infer_two_classes(column: str, labels: Iterable[object]) -> tuple[str, ...] | None:
    """The classes where one column, such as prob_ill, is that of one of two labels: the other one
    first.

    >>> infer_two_classes("prob_ill", ["ill", "well", "ill"])
    ('well', 'ill')
    """
    plain = column.strip()
    seen = {str(label).strip() for label in labels}
    for prefix in CLASS_COLUMN_STARTS:
        end = plain[len(prefix) :]
        if plain.lower().startswith(prefix) and end in seen and len(seen) == 2:
            (other,) = seen - {end}
            return other, end
    return None


def _plan_label_columns(contents: Contents) -> Plan:
    """The columns `label_0, label_1, …` or `label_cat, label_dog, …` of a table, in the order of
    the probabilities.
    """
    by_end: dict[str, str] = {}
    for name in contents.entries:
        if name.strip().lower().startswith(LABEL_COLUMN_START):
            by_end[name.strip()[len(LABEL_COLUMN_START) :]] = name
    if not by_end:
        return {}
    values = next(iter(_plan_class_columns(contents).values()), ())
    ends = [name.strip().partition("_")[2] for name in values]
    if sorted(ends) != sorted(by_end):
        odd = _list_names(sorted(set(ends) ^ set(by_end)))
        got = f"has columns of values and of labels that do not belong together ({odd})"
        need = "with many labels each prob_x has a label_x"
        raise InputError(contents.path.name, got=got, need=need)
    return {"labels": tuple(by_end[end] for end in ends)}


def _order_by_number(names: list[str], prefix: str, contents: Contents) -> tuple[str, ...]:
    """By number where all are numbered, else in the order of the file."""
    ends = [name.strip()[len(prefix) :] for name in names]
    if not all(end.isascii() and end.isdigit() and len(end) < 10 for end in ends):
        return tuple(names)
    by_number = sorted(zip(map(int, ends), names, strict=True))
    numbers = [number for number, _ in by_number]
    if numbers == [0]:
        need = f"a binary model gives class 1 alone, {prefix}1"
        raise InputError(contents.path.name, got=f"has only {names[0]!r}", need=need)
    # From 1 on they are named so; prob_1 alone is P(y=1) of a binary model.
    first = min(numbers)
    if first > 1 or numbers != list(range(first, first + len(numbers))):
        missing = min(set(range(len(numbers) + 1)) - set(numbers))
        got = f"has {len(names)} columns {prefix}… but no {prefix}{missing} (or one twice)"
        need = "classes are numbered from 0 or 1 on without gaps"
        raise InputError(contents.path.name, got=got, need=need)
    return tuple(name for _, name in by_number)


def _has_values(plan: Plan) -> bool:
    return any(part in plan for part in (*VALUES, *SAMPLES))


def _choose_split(
    by_split: dict[str, Plan], contents: Contents, options: ReadOptions, given: Plan
) -> str:
    splits = [split for split, plan in by_split.items() if _has_values(plan)]
    if options.split is None:
        if len(splits) > 1 and not _has_values(given):
            raise make_several_splits_error(contents.path, splits)
        return splits[0] if len(splits) == 1 else ""
    if contents.table and "split" in by_split.get("", {}):
        return ""  # the rows are chosen later, by what the column says
    if contents.table and options.split != "":
        hint = f"leave out {options.split!r}"
        raise InputError(contents.path.name, got="is a table without a column split", hint=hint)
    if options.split in splits or _has_values(given):
        return options.split
    raise make_no_split_error(options.split, splits, contents.path)


# The names that a caller gives


def _plan_given_names(contents: Contents, options: ReadOptions) -> Plan:
    """The names that the caller gave, which must be there."""
    plan: Plan = {}
    for part, given in options.names.items():
        if part not in PARTS:
            need = f"the parts are {', '.join(PARTS)}"
            hint = _suggest_similar(part, PARTS)
            raise InputError("names", got=f"has {part!r}", need=need, hint=hint)
        if part == CLASSES:
            continue
        expanded = expand_names(given, contents.entries)
        names = [_find_entry(name, contents, options.split) for name in expanded]
        prefix = None
        if isinstance(given, str) and given.endswith("*"):
            prefix = given[:-1]
        if not names and prefix is not None:
            got = f"has nothing that begins with {prefix!r}"
            raise InputError(contents.path.name, got=got, need=_describe_entries(contents))
        if not names:
            got = f"gives nothing for {part!r}"
            raise InputError("names", got=got, hint="leave it out or name a column")
        several = part in VECTORS or (part == "labels" and options.multilabel)
        if len(names) > 1 and not several:
            got = f"gives {len(names):,} columns for {part!r}"
            need = f"one is needed; several go with {', '.join(VECTORS)}"
            raise InputError("names", got=got, need=need)
        plan[part] = tuple(names)
        if prefix is not None:
            plan[part] = _order_by_number(names, prefix, contents)
    return plan


def _find_entry(name: str, contents: Contents, split: str | None) -> str:
    for candidate in (name, f"{split}_{name}"):
        if candidate in contents.entries:
            return candidate
    raise InputError(
        contents.path.name,
        got=f"has no {name!r}",
        need=_describe_entries(contents),
        hint=_suggest_similar(name, contents.entries),
    )


# What the classes are called


def get_given_classes(options: ReadOptions) -> tuple[str, ...] | None:
    """What the caller calls the classes, in the order of the values: "no,yes" or a list.

    >>> get_given_classes(ReadOptions(names={"classes": "no, yes"}))
    ('no', 'yes')
    """
    given = options.names.get(CLASSES)
    if given is None:
        return None
    if isinstance(given, str):
        given = given.split(",")
    names = tuple(name.strip() for name in given)
    if not all(names) or len(set(names)) < len(names):
        got = f"are {', '.join(map(repr, names))}"
        raise InputError("classes", got=got, need="different names are needed")
    return names


def infer_classes(columns: tuple[str, ...]) -> tuple[str, ...] | None:
    """The classes that columns name, such as `prob_cat`, or `cat` itself; None where they are
    numbered from 0 on.

    >>> infer_classes(("prob_cat", "prob_dog")), infer_classes(("p.no", "p.yes"))
    (('cat', 'dog'), ('no', 'yes'))
    >>> infer_classes(("x1", "x2")), infer_classes(("p_1", "p_0")), infer_classes(("p_0", "p_1"))
    (('x1', 'x2'), ('1', '0'), None)
    """
    if len(columns) < 2:
        return None
    names = [column.strip() for column in columns]
    prefixes = [prefix for prefix in CLASS_COLUMN_STARTS if names[0].lower().startswith(prefix)]
    if prefixes:
        start = len(prefixes[0])
    else:
        # What all have in common, up to the last sign between words.
        same = 0
        for letters in zip(*names, strict=False):
            if len(set(letters)) > 1:
                break
            same += 1
        else:
            same = 0  # one name is the beginning of all others
        start = 1 + max(names[0].rfind(sign, 0, same) for sign in WORD_SEPARATORS)
    ends = tuple(name[start:] for name in names)
    if ends == tuple(map(str, range(len(ends)))):
        return None
    return ends if all(ends) else tuple(names)


# Errors


def make_several_splits_error(path: Path, splits: list[str]) -> InputError:
    """What to say where there are several splits and none was named."""
    return InputError(
        path.name,
        got=f"has {len(splits)} splits ({_list_names(splits)})",
        hint="choose one with split= (--split)",
    )


def make_no_split_error(split: str, splits: list[str], path: Path) -> InputError:
    """What to say where the split that was named is not there."""
    return InputError(
        path.name,
        got=f"has no split {split!r}",
        need=f"its splits are: {_list_names(splits) or 'none'}",
        hint=_suggest_similar(split, splits),
    )


def _describe_split(split: str) -> str:
    return f" of split {split!r}" if split else ""


def _describe_entries(contents: Contents) -> str:
    return f"it holds {_list_names(list(contents.entries)) or 'nothing'}"


def _list_names(names: list[str]) -> str:
    """The first names, none of them longer than a word should be, and how many more there are."""
    shown: list[str] = []
    for name in names[:LISTED_NAMES]:
        short = name if len(name) <= NAME_LETTERS else f"{name[: NAME_LETTERS - 3]}..."
        shown.append(repr(short))
    more = ""
    if len(names) > LISTED_NAMES:
        more = f" and {len(names) - LISTED_NAMES:,} more"
    return ", ".join(shown) + more


def _suggest_similar(name: str, known: Iterable[str]) -> str:
    # Comparing takes time: a file may hold millions of names, or one of a million letters.
    short = [other for other in islice(known, COMPARED_NAMES) if len(other) <= NAME_LETTERS]
    close = difflib.get_close_matches(name, short, n=1)
    return f"Did you mean {close[0]!r}?" if close else ""


# What columns may be whose names say nothing: suggestions for the caller, never taken by themselves

SUGGESTION_ROWS = 1000  # rows that are looked at
SUGGESTION_COLUMNS = 200  # columns that are looked at
LISTED_COLUMNS = 6
CLASS_LIST_LETTERS = 200
LAST_NUMBER = re.compile(r"[0-9]{1,9}$")
# Of numbers that are higher where an answer is less sure.
UNSURE_NAMES = re.compile(r"uncertain|entropy|variance|error|wrong|loss|mistake|(^|_)std($|_)")
ROW_SUM_SLACK = 0.02  # by so much rows of rounded probabilities may miss 1
WHOLE_DTYPES = ("int", "uint", "bool")  # how the names of these types begin


def suggest_names(contents: Contents) -> str:
    """Options of a command that may make a table readable; "" where nothing comes to mind.

    >>> from pathlib import Path
    >>> from howsure.formats.contents import make_text_entry
    >>> cells = {"animal": ["cat", "dog"], "cat": ["0.9", "0.2"], "dog": ["0.1", "0.8"]}
    >>> entries = {name: make_text_entry(c) for name, c in cells.items()}
    >>> suggest_names(Contents(Path("a.csv"), entries, table=True))
    "The texts of 'animal' are names of columns: try --name probs=cat,dog --name labels=animal"
    """
    if not contents.table:
        return ""
    found = find_numbers(contents)
    shares = found.shares
    for name, entry in list(contents.entries.items())[:SUGGESTION_COLUMNS]:
        if name in found.numbers or len(entry.shape) != 1:
            continue
        texts = list_texts(entry)
        if texts and all(text.startswith("[") for text in texts):
            return f"{name!r} holds lists: try {_name_option('probs', name)}, or logits= if they do not sum to 1"
        # Every text of a column of labels names a column of numbers; so do the answers.
        classes = [column for column in found.numbers if column.strip() in texts]
        if len(classes) < len(texts) or len(texts) < 2 or found.parts.get(name) == "prediction":
            continue
        part = "logits"
        if set(classes) <= set(shares):
            part = "probs"
            # A class without a label in these rows has a column too: together they sum to 1.
            if found.sums_to_one(shares):
                classes = shares
        listed = ",".join(classes)
        if len(listed) > CLASS_LIST_LETTERS:
            listed = f"{classes[0][:NAME_LETTERS]},…,{classes[-1][:NAME_LETTERS]}"
        words = f"{_name_option(part, listed)} {_name_option('labels', name)}"
        return f"The texts of {name[:NAME_LETTERS]!r} are names of columns: try {words}"
    together: tuple[str, list[str]] | None = None
    if found.sums_to_one(shares):
        together = ("probs", shares)
    elif found.logs:
        together = ("logprobs", found.logs)
    if together is not None:
        part, columns = together
        what = "sum to 1 in every row"
        if part == "logprobs":
            what = "are logarithms of numbers that do"
        way = _name_option(part, ",".join(columns))
        if len(way) <= CLASS_LIST_LETTERS:
            return f"{', '.join(repr(one[:NAME_LETTERS]) for one in columns)} {what}: try {way}"
    if found.unsure and not shares:
        name = found.unsure[0][:NAME_LETTERS]
        return (
            f"{name!r} is lower for surer answers by its name: "
            f"add a column with {name} times -1 and name it {_name_option('score', '…')}"
        )
    if not shares:
        answered = {"prediction", "correct"} & set(found.parts.values())
        for name in found.beyond:
            way = f"{_name_option('score', name)} if higher is surer"
            if not answered:
                way = f"{_name_option('logits', name)} if that is the log-odds of class 1"
            return f"{name[:NAME_LETTERS]!r} holds numbers beyond [0, 1]: try {way}"
        return ""
    short = [name[:NAME_LETTERS] for name in shares]
    listed = ", ".join(map(repr, short[:LISTED_COLUMNS]))
    verb = "holds" if len(short) == 1 else "hold"
    return (
        f"{listed} {verb} numbers between 0 and 1: try {_name_option('probs', short[0])} if that is the "
        f"probability of class 1, {_name_option('confidence', short[0])} if it says how sure the answer is"
    )


def _name_option(part: str, columns: str) -> str:
    return f"--name {quote(f'{part}={columns}')}"


@frozen(eq=False)
class FoundNumbers:
    """The columns of numbers of a table: all of them, those between 0 and 1 that are not right or
    wrong, those that are lower for surer answers by their names, those beyond [0, 1], and the
    logarithms of rows that sum to 1.
    """

    parts: dict[str, str]
    numbers: dict[str, Floats]
    shares: list[str]
    unsure: list[str]
    beyond: list[str]
    logs: list[str]

    def sums_to_one(self, columns: Sequence[str]) -> bool:
        """Whether these are the probabilities of several classes."""
        if len(columns) < 2:
            return False
        total = sum(self.numbers[name] for name in columns)
        return bool(np.allclose(total, 1, atol=ROW_SUM_SLACK))

    def cuts_answers(self, name: str) -> bool:
        """Whether the answers are 1 from some value of a column on and 0 below: that is the
        probability of class 1, and does not say how sure the answers are.
        """
        column = self.numbers[name]
        for other, part in self.parts.items():
            answers = self.numbers.get(other)
            if part != "prediction" or answers is None or len(answers) < TELLING_ANSWERS:
                continue
            if set(answers.tolist()) == {0, 1}:
                return bool(column[answers == 0].max() < column[answers == 1].min())
        return False


def find_numbers(contents: Contents) -> FoundNumbers:
    """Sort the columns of numbers by what they may be; those of a class's number by it."""
    numbers: dict[str, Floats] = {}
    shares: list[str] = []
    unsure: list[str] = []
    beyond: list[str] = []
    for name, entry in list(contents.entries.items())[:SUGGESTION_COLUMNS]:
        column = read_numbers(entry, contents.commas)
        if column is None:
            continue
        numbers[name] = column
        inside = column.min() >= 0 and column.max() <= 1
        if UNSURE_NAMES.search(name.lower()):
            unsure.append(name)
        elif inside and not np.isin(column, (0, 1)).all():
            shares.append(name)
        elif not inside and not np.equal(column, np.rint(column)).all():
            beyond.append(name)
    logs: list[str] = []
    if len(beyond) > 1 and all(numbers[name].max() <= 0 for name in beyond):
        total = sum(np.exp(numbers[name]) for name in beyond)
        if np.allclose(total, 1, atol=ROW_SUM_SLACK):
            logs = beyond
    shares.sort(key=_get_last_number)
    return FoundNumbers(
        parts=find_parts(contents),
        numbers=numbers,
        shares=shares,
        unsure=unsure,
        beyond=beyond,
        logs=sorted(logs, key=_get_last_number),
    )


def _get_last_number(name: str) -> int:
    """The number that a name ends with; 0 for all others, which stay as they stand."""
    digits = LAST_NUMBER.search(name.strip())
    return int(digits[0]) if digits else 0


def read_numbers(entry: FileEntry, commas: bool) -> Floats | None:
    """The first numbers of a column; None where some are none."""
    if len(entry.shape) != 1 or entry.rows < 2:
        return None
    try:
        cells = entry.load()[:SUGGESTION_ROWS]
        if commas and not isinstance(cells, np.ndarray):
            cells = replace_commas_of_numbers(cells)
        numbers = np.array(cells, dtype=np.float64)
    except (ValueError, TypeError, OverflowError):
        return None
    return numbers if numbers.ndim == 1 and np.isfinite(numbers).all() else None


def find_label_columns(contents: Contents, k: int, n: int) -> list[str]:
    """What may hold the labels of n samples: columns with two to k different values, arrays of
    whole numbers.

    >>> from pathlib import Path
    >>> from howsure.formats.contents import make_array_entry, make_text_entry
    >>> cells = {"age": ["41", "57", "63"], "sick": ["1", "0", "1"], "ward": ["a", "a", "a"]}
    >>> entries = {name: make_text_entry(c) for name, c in cells.items()}
    >>> find_label_columns(Contents(Path("a.csv"), entries, table=True), 2, 3)
    ['sick']
    >>> arrays = {"Y": make_array_entry(np.arange(3)), "X": make_array_entry(np.ones(3))}
    >>> find_label_columns(Contents(Path("a.npz"), arrays), 9, 3)
    ['Y']
    """
    names: list[str] = []
    for name, entry in list(contents.entries.items())[:SUGGESTION_COLUMNS]:
        if contents.table:
            fits = len(entry.shape) == 1 and 2 <= len(list_texts(entry)) <= k
        else:
            one_each = entry.shape[:1] == (n,) and len(entry.shape) <= 2
            fits = one_each and entry.dtype.startswith(WHOLE_DTYPES)
        if fits:
            names.append(name)
    return names


def list_texts(entry: FileEntry) -> set[str]:
    """The different texts of the first rows of a column."""
    return {str(cell).strip() for cell in entry.load()[:SUGGESTION_ROWS]}
