"""Bodies of decision models: typed answers with probabilities, found inside any envelope.

Two shapes are in use. OpenAI Decisions lists its answers, System One maps names to them; envelopes
are everybody's own, so the body is searched for, as an object or as the text of one.
"""

from __future__ import annotations

import json
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import cast

from howsure._core.checks import InputError
from howsure._core.frozen import frozen
from howsure.formats.logs.json_tree import Json, Record, as_number, as_record

ANSWER_TYPES = {
    "predicate": "yes/no",
    "noul": "yes/no",
    "choice": "choice",
    "score": "score",
    "refusal": "refusal",
    "box": "box",
}
NO, YES = "no", "yes"
YES_NO = (NO, YES)
SEARCH_DEPTH = 6
ANSWERED, REFUSED, MISSING = 0, 1, 2
REASONS = ("", "refused", "missing")  # as `no_answer` has them
Place = tuple[str | int, ...]  # the keys that lead to a body; "" opens the text of an object


class BadAnswer(InputError):
    """An answer that is no answer of a decision model."""


@frozen
class FoundBody:
    """A body, where it stands in its record, and the questions of the request, if they are there."""

    body: Record
    place: Place


def is_answer(value: Json) -> bool:
    """Whether this is one typed answer."""
    return isinstance(value, dict) and find_kind(value) is not None


def find_kind(answer: Record) -> str | None:
    """The kind of a typed answer; None where it has none of ours."""
    kind = answer.get("type")
    return ANSWER_TYPES.get(kind) if isinstance(kind, str) else None


def is_body(value: Json) -> bool:
    """Whether an object has typed answers, as a list or by name.

    >>> is_body({"answers": [{"type": "predicate", "name": None, "probability": 0.9}]})
    True
    """
    answers = as_record(value).get("answers")
    if isinstance(answers, dict):
        return bool(answers) and all(map(is_answer, answers.values()))
    return isinstance(answers, list) and bool(answers) and all(map(is_answer, answers))


def find_body(record: Json, depth: int = SEARCH_DEPTH) -> FoundBody | None:
    """The first body in a record, nearest to its top.

    >>> find_body({"raw": '{"answers": {"late": {"type": "noul", "noul": 0.9}}}'}).place
    ('raw', '')
    """
    level: list[tuple[Place, Json]] = [((), record)]
    for _ in range(depth):
        deeper: list[tuple[Place, Json]] = []
        for place, value in level:
            if isinstance(value, str) and "answers" in value and value.lstrip()[:1] == "{":
                place = (*place, "")
                value = _open_text(value)
            if is_body(value):
                return FoundBody(as_record(value), place)
            if isinstance(value, dict):
                deeper += [((*place, key), inner) for key, inner in value.items()]
            elif isinstance(value, list):
                deeper += [((*place, i), inner) for i, inner in enumerate(value)]
        level = deeper
    return None


def follow_place(record: Json, place: Place) -> Record | None:
    """What stands where the body of an earlier record stood, if it is one."""
    value = record
    for step in place:
        if step == "" and isinstance(value, str):
            value = _open_text(value)
        elif isinstance(value, dict) and isinstance(step, str):
            value = value.get(step)
        elif isinstance(value, list) and isinstance(step, int) and step < len(value):
            value = value[step]
        else:
            return None
    return as_record(value) if isinstance(value, dict) and "answers" in value else None


def _open_text(text: str) -> Json:
    try:
        return json.loads(text)
    except ValueError:
        return None


def convert_flat_record(record: Record) -> Record | None:
    """A record that is its own answer, as a body: a choice beside its probabilities, or several
    probabilities of yes.

    >>> convert_flat_record({"choice": "a", "probs": {"a": 0.9, "b": 0.1}})["answers"]["choice"]["choice"]
    'a'
    """
    probs = record.get("probs", record.get("probabilities"))
    if isinstance(record.get("choice"), str | bool) and isinstance(probs, dict):
        answer: Record = {"type": "choice", "choice": record["choice"], "probabilities": probs}
        if "confidence" in record:
            answer["confidence"] = record["confidence"]
        return {"answers": {"choice": answer}}
    shares = record.get("noul_raw", record.get("noul"))
    if (
        isinstance(shares, dict)
        and shares
        and all(as_number(p) is not None for p in shares.values())
    ):
        return {"answers": {name: {"type": "noul", "noul": p} for name, p in shares.items()}}
    return None


class BodyColumns:
    """Collects answers row by row in flat arrays, so that a million take little memory."""

    def __init__(self) -> None:
        self.question_numbers: dict[str, int] = {}
        self.kinds: list[str] = []
        self.shown_levels: list[dict[int, str]] = []  # of a score: its level by number
        self.option_numbers: dict[tuple[type, Json], int] = {}
        self.option_keys: dict[tuple[Json, ...], tuple[int, ...]] = {}
        self.record = array("q")
        self.question = array("q")
        self.answer = array("q")
        self.reason = array("b")
        self.confidence = array("d")
        self.starts = array("q", [0])
        self.option = array("q")
        self.probability = array("d")
        self.boxes = 0

    def add_body(self, record: int, body: Record) -> None:
        """All answers of one body."""
        answers = body["answers"]
        named: Iterable[tuple[str, Json]]
        if isinstance(answers, dict):
            named = answers.items()
        else:
            named = _name_answers(answers if isinstance(answers, list) else [])
        for name, answer in named:
            if not isinstance(answer, dict):
                raise BadAnswer(f"the answer to {name!r} is no object")
            kind = find_kind(answer)
            if kind == "box":
                self.boxes += 1
                continue
            if kind is None:
                raise BadAnswer(f"the answer to {name!r} has the type {answer.get('type')!r}")
            question = self.question_numbers.get(name)
            if question is None:
                question = self.add_question(name)
            if kind == "refusal":
                self.add_silent(record, question, REFUSED)
                continue
            if self.kinds[question] != kind:
                if self.kinds[question]:
                    raise BadAnswer(
                        f"the answer to {name!r} is a {kind}, earlier ones are {self.kinds[question]}"
                    )
                self.kinds[question] = kind
            self.record.append(record)
            self.question.append(question)
            self.reason.append(ANSWERED)
            try:
                READ_ANSWER[kind](self, question, answer)
            except (TypeError, KeyError, ValueError, AttributeError, OverflowError):
                raise BadAnswer(
                    f"the answer to {name!r} cannot be read: {str(answer)[:80]}"
                ) from None
            self.starts.append(len(self.option))

    def add_question(self, name: str) -> int:
        """A question that was not asked before."""
        self.question_numbers[name] = len(self.kinds)
        self.kinds.append("")
        self.shown_levels.append({})
        return len(self.kinds) - 1

    def add_silent(self, record: int, question: int, reason: int) -> None:
        """A question without an answer."""
        self.record.append(record)
        self.question.append(question)
        self.reason.append(reason)
        self.answer.append(-1)
        self.confidence.append(float("nan"))
        self.starts.append(len(self.option))

    def number_option(self, value: Json) -> int:
        """The number of an option; `true` and "true" are two."""
        if not isinstance(value, str | bool | int | float):
            raise ValueError
        return self.option_numbers.setdefault((type(value), value), len(self.option_numbers))

    def number_options(self, values: Sequence[Json]) -> tuple[int, ...]:
        """The numbers of several options; the same ones come again and again."""
        key = tuple(values)
        if True in key or False in key:  # equal to 1 and 0 as keys
            return tuple(map(self.number_option, values))
        numbers = self.option_keys.get(key)
        if numbers is None:
            numbers = self.option_keys[key] = tuple(map(self.number_option, values))
        return numbers

    def add_yes_no(self, _: int, answer: Record) -> None:
        """P(yes); the answer is yes above one half, the confidence that of the answer."""
        p = answer["probability"] if "probability" in answer else answer["noul"]
        if not isinstance(p, int | float) or isinstance(p, bool):
            raise TypeError
        self.answer.append(int(p > 0.5))
        self.confidence.append(p if p > 0.5 else subtract_from_one(p))
        self.option.append(1)
        self.probability.append(p)

    def add_choice(self, _: int, answer: Record) -> None:
        """The answer is what `choice` says, which need not be the most probable option."""
        self.answer.append(self.number_option(answer["choice"]))
        self._add_confidence(answer)
        given = answer.get("probabilities")
        if isinstance(given, dict):
            self.option.extend(self.number_options(tuple(given)))
            self.probability.extend(cast("dict[str, float]", given).values())
        elif isinstance(given, list):
            pairs = cast("list[dict[str, Json]]", given)
            self.option.extend(self.number_options([one["value"] for one in pairs]))
            self.probability.extend([cast("float", one["probability"]) for one in pairs])

    def add_score(self, question: int, answer: Record) -> None:
        """The answer is the most probable level; of equal ones that nearest to the mean level."""
        self._add_confidence(answer)
        given = answer.get("probabilities")
        levels: list[int] = []
        probs: list[float] = []
        shown = self.shown_levels[question]
        if isinstance(given, dict):
            levels = [int(key) for key in given]
            probs = list(cast("dict[str, float]", given).values())
        elif isinstance(given, list):
            for one in cast("list[dict[str, Json]]", given):
                place = cast("int", one["value"])
                levels.append(place)
                probs.append(cast("float", one["probability"]))
                if place not in shown and "label" in one:
                    shown[place] = str(one["label"])
        for key, text in as_record(answer.get("legend")).items():
            if int(key) not in shown:
                shown[int(key)] = str(text)
        mean = as_number(answer.get("score"))
        if levels:
            top = max(probs)
            best = [level for level, p in zip(levels, probs, strict=True) if p == top]
            if len(best) > 1 and mean is not None:
                best.sort(key=lambda level: (abs(level - mean), level))
            self.answer.append(best[0])
        elif mean is not None:
            self.answer.append(round(mean))
        else:
            raise KeyError
        self.option.extend(levels)
        self.probability.extend(probs)

    def _add_confidence(self, answer: Record) -> None:
        given = answer.get("confidence")
        if given is None:
            given = float("nan")
        self.confidence.append(cast("float", given))


def subtract_from_one(p: float) -> float:
    """1 - p, without the noise of the last bits where p has few digits: then p <= 0.07 and a
    complement of at least 0.93 are the same comparison.

    >>> subtract_from_one(0.07), subtract_from_one(0.07000000000000006)
    (0.93, 0.9299999999999999)
    """
    return round(1 - p, 13) if round(p, 13) == p else 1 - p


def _name_answers(answers: Sequence[Json]) -> Iterator[tuple[str, Json]]:
    """The answers of a list by name; #1, #2 where they have none."""
    for i, answer in enumerate(answers, start=1):
        name = as_record(answer).get("name")
        yield (f"#{i}" if name is None else str(name)), answer


READ_ANSWER: dict[str, Callable[[BodyColumns, int, Record], None]] = {
    "yes/no": BodyColumns.add_yes_no,
    "choice": BodyColumns.add_choice,
    "score": BodyColumns.add_score,
}


def find_request(record: Json) -> dict[str, str]:
    """The text of each question, where the record holds the request too.

    >>> find_request({"request": {"questions": [{"type": "predicate", "name": "late", "text": "Late?"}]}})
    {'late': '{"text":"Late?","type":"predicate"}'}
    """
    level: list[Json] = [record]
    for _ in range(SEARCH_DEPTH):
        deeper: list[Json] = []
        for value in level:
            if isinstance(value, str) and "questions" in value and value.lstrip()[:1] == "{":
                value = _open_text(value)
            if isinstance(value, dict):
                asked = value.get("questions")
                named: list[tuple[str, Json]] = []
                if isinstance(asked, dict):
                    named = list(asked.items())
                elif isinstance(asked, list):
                    named = list(_name_answers(asked))
                if named and all(isinstance(one, dict) and "type" in one for _, one in named):
                    return {name: write_plainly(as_record(one)) for name, one in named}
                deeper += value.values()
            elif isinstance(value, list):
                deeper += value
        level = deeper
    return {}


def write_plainly(question: Record) -> str:
    """A question without its name, keys in order."""
    rest = {key: value for key, value in question.items() if key != "name"}
    return json.dumps(rest, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
