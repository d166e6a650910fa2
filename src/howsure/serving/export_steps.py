"""What an exported policy computes, as a short list of steps that every target writes in its own
words: from the given numbers over the calibrator to the score.

A step has a name, a way and a formula in Python's notation. `each` and `keep` make a number for
each class (`keep` where a target with arrays stores it), `one` makes a single number, and `max`,
`sum` and `argmax` run over the classes. `product` is a matrix times a vector, and `look_up` a map
by pieces: where `start` of piece j is the last one that is not above p, y + slope · (p − x). The
largest number that an `argmax` found is called its name and `_most`.
"""

from __future__ import annotations

import ast
from math import log
from typing import Literal, NamedTuple, TypeAlias, cast

import numpy as np

from howsure._core.checks import LARGEST_NUMBER, Floats
from howsure._core.frozen import frozen
from howsure.binning import equal_range
from howsure.calibrators import Calibrator
from howsure.calibrators.calibrator import SMALLEST_PROBABILITY
from howsure.calibrators.linear import LEAST_PROBABILITY, StructuredScaling, VectorScaling
from howsure.calibrators.logistic import Beta, Platt
from howsure.calibrators.step_functions import HistogramBinning, Isotonic
from howsure.calibrators.temperature import Temperature
from howsure.predictions.columns import COMPLEMENT_DECIMALS, COMPLEMENT_LIMIT, TRUE_COMPLEMENT
from howsure.predictions.input_shapes import ROW_SUM_TOLERANCE

Way: TypeAlias = Literal["each", "keep", "one", "max", "sum", "argmax", "product", "look_up"]
UNIT = 2.0**-53  # half of the last digit of 1
RULED_OUT = -1e200  # in the place of minus infinity: below every logit, and dividing it is safe
SMALLEST_EXPONENT = -708.0  # PostgreSQL refuses an exp that underflows
FLUSHED = 1e-200  # PostgreSQL refuses products that underflow: smaller numbers are 0 there
UP = 1.25 * UNIT  # of a number: to the next larger one
WHOLE = 2.0**52  # adding and subtracting it rounds to a whole number
TOP_CLASSES = 5  # of top_k_mass
LONGEST_LOG = 28.0  # of a probability, which counts as at least 1e-12
TINY, SINGLE_TINY = 2.0**-1010, 2.0**-115  # below it exp loses digits, of all classes together


class Step(NamedTuple):
    """One step: a name, how it is made, and its formula or the name of what it is made from."""

    name: str
    way: Way
    formula: str


class Pieces(NamedTuple):
    """A map of one class by pieces; the first piece has no start."""

    start: list[float]
    x: list[float]
    y: list[float]
    slope: list[float]


@frozen(eq=False)
class Program:
    """The steps from `v`, one number for each class, to `score`, `top` and `valid`.

    `relative` and `absolute` bound by how much the score of a target can differ from that of
    `decide`; both are 0 where no digit can.
    """

    steps: tuple[Step, ...]
    vectors: dict[str, Floats]  # constants with a number for each class
    matrix: Floats | None
    pieces: tuple[Pieces, ...]
    relative: float
    absolute: float


class ProgramBuilder:
    """Writes the steps of one policy down, and how exact they are."""

    def __init__(self, k: int, target: str, precision: str, dialect: str) -> None:
        self.k, self.flushed = k, ""
        if target == "sql" and dialect == "postgres":
            self.flushed = f"0.0 if v > {-FLUSHED!r} and v < {FLUSHED!r} else "
        self.tolerance = ROW_SUM_TOLERANCE[{"double": 8, "float": 4}[precision]]
        self.steps: list[Step] = []
        self.vectors: dict[str, Floats] = {}
        self.matrix: Floats | None = None
        self.pieces: tuple[Pieces, ...] = ()
        # By how much exp and log of two libraries differ, and then a sum of them over the classes.
        self.function, self.tiny = 4 * UNIT, TINY
        if (target, precision) == ("c", "float"):
            self.function += 2.0**-23
            self.tiny = SINGLE_TINY
        if self.flushed:
            self.tiny = FLUSHED * 2.0**20
        self.sum = (2 * min(k, 100) + 12) * UNIT + self.function
        self.moved = 0.0  # by how much a calibrator can add to that
        self.exact = False

    def add(self, name: str, way: Way, formula: str) -> None:
        """Add a step."""
        self.steps.append(Step(name, way, formula))

    # ---- what is given

    def take_logits(self, ruled_out: bool) -> None:
        """`x`, the logits; whatever `decide` refuses is 0 there and makes `valid` 0."""
        within = f"v >= {-LARGEST_NUMBER!r} and v <= {LARGEST_NUMBER!r}"
        if ruled_out:
            self.add("bad", "sum", f"0.0 if {within} or v == -inf else 1.0")
            self.add(
                "x", "each", f"{self.flushed}v if {within} else {RULED_OUT!r} if v == -inf else 0.0"
            )
            self.add("top", "argmax", "x")
            some = f"top_most >= {-LARGEST_NUMBER!r}"
            self.add("valid", "one", f"1.0 if bad == 0.0 and {some} else 0.0")
            return
        self.add("bad", "sum", f"0.0 if {within} else 1.0")
        self.add("x", "each", f"{self.flushed}v if {within} else 0.0")
        self.add("valid", "one", "1.0 if bad == 0.0 else 0.0")

    def take_probabilities(self) -> None:
        """`x`, probabilities in [0, 1]; those of two classes are one number and its complement."""
        tolerance = self.tolerance
        within = f"v >= {-tolerance!r} and v <= {1 + tolerance!r}"
        self.add("bad", "sum", f"0.0 if {within} else 1.0")
        self.add("mass", "sum", f"v if {within} else 0.0")
        self.add("valid", "one", f"1.0 if bad == 0.0 and {_near('mass', tolerance)} else 0.0")
        clipped = f"{self.flushed}v if v >= 0.0 and v <= 1.0 else 1.0 if v > 1.0 else 0.0"
        if self.k != 2:
            self.add("x", "each", clipped)
            return
        self.add("given", "each", clipped)
        self.add("both", "sum", "given")
        self.add("other", "sum", "given if i == 1 else 0.0")
        self.add("joined", "one", f"1.0 if {_near('both', TRUE_COMPLEMENT)} else 0.0")
        self.add("x", "each", "given if i == 1 or joined == 0.0 else 1.0 - other")

    def take_number(self, low: str, high: str, *, mapped: bool) -> None:
        """`x`, one number that is compared, or `mapped` before."""
        flushed = self.flushed * mapped
        self.add("bad", "sum", f"0.0 if v >= {low} and v <= {high} else 1.0")
        self.add("valid", "one", "1.0 if bad == 0.0 else 0.0")
        self.add("x", "each", f"{flushed}v if v >= {low} and v <= {high} else 0.0")
        self.exact = True

    # ---- calibrators

    def calibrate_logits(self, calibrator: Calibrator | None) -> None:
        """`z`, the logits that are scored, with `top` and `peak`."""
        if calibrator is None:
            self.add("z", "each", "x")
            self.add("peak", "one", "top_most")
        elif isinstance(calibrator, Temperature) and calibrator.samples is None:
            self.add("z", "each", f"x / {calibrator.temperature!r}")
            self.add("first", "argmax", "z")
            # As in `Temperature`: of two that rounding made equal, the larger one stays it.
            up = f"first_most + {UP!r} * (first_most if first_most > 0.0 else -first_most)"
            self.add("peak", "one", f"first_most if first == top else {up}")
        elif isinstance(calibrator, Temperature):
            self._mix("x", calibrator)
            self.add("z", "keep", "log(mixed)")
            self.add("peak", "max", "z")
            self.moved += self.function * self._longest_log(calibrator)
        else:
            if isinstance(calibrator, StructuredScaling):
                self._map_structured("x", calibrator)
            else:
                self._map_vector("x", cast("VectorScaling", calibrator))
            self.add("top", "argmax", "z")
            self.add("peak", "one", "top_most")

    def calibrate_probabilities(self, calibrator: Calibrator | None) -> None:
        """`q`, the probabilities that are scored, with `top`."""
        self.exact = calibrator is None
        if calibrator is None:
            self.add("q", "each", "x")
        elif isinstance(calibrator, (Platt, Beta, Isotonic, HistogramBinning)):
            self.map_each(calibrator)
            self.add("whole", "sum", "mapped")
            self.add("q", "keep", "mapped / whole if whole > 0.0 else x")
        else:
            self._map_logs(calibrator)
        top = "q"
        if isinstance(calibrator, Temperature):
            top = "x"
        self.add("top", "argmax", top)
        if calibrator is not None:
            self.moved += self.sum + 1e-13 * (self.k == 2)  # two classes are rounded to 13 digits

    def _map_logs(self, calibrator: Calibrator) -> None:
        """Maps of the logs of probabilities: `q`, the softmax of what comes out."""
        floor, spread = SMALLEST_PROBABILITY, log(self.k) + 1
        if isinstance(calibrator, StructuredScaling):
            floor, spread = LEAST_PROBABILITY, self._longest_log(calibrator)
        self.add("logs", "each", f"log(x if x > {floor!r} else {floor!r})")
        if isinstance(calibrator, VectorScaling):
            self._map_vector("logs", calibrator)
            steep = float(np.abs(calibrator.weight).max())
            shift = float(np.abs(calibrator.intercept).max())
            self.moved += LONGEST_LOG * steep * (self.function + 2 * UNIT) + 2 * UNIT * shift
        elif isinstance(calibrator, StructuredScaling):
            self.moved += self.function * (2 * log(self.k) / calibrator.temperature + spread)
            self._map_structured("logs", calibrator)
        else:
            temperature = cast("Temperature", calibrator)
            self.moved += self.function * (2 * log(self.k) / temperature.temperature + spread)
            self._mix("logs", temperature)
            self.add("q", "keep", "mixed")
            return
        self.add("peak", "max", "z")
        self._exponentiate("e", "z - peak")
        self.add("total", "sum", "e")
        self.add("q", "keep", "e / total")

    def _mix(self, source: str, calibrator: Temperature | StructuredScaling) -> None:
        """`mixed`, the softmax at a temperature as n samples beside one that is uniform."""
        n = calibrator.samples
        self.add("least", "max", source)
        self._exponentiate("soft", f"({source} - least) / {calibrator.temperature!r}")
        self.add("softs", "sum", "soft")
        if n is None:
            self.add("mixed", "each", "soft / softs")
            return
        self.add("mixed", "each", f"({float(n)!r} * (soft / softs) + {1 / self.k!r}) / {n + 1.0!r}")
        self.moved += self.sum

    def _map_structured(self, source: str, calibrator: StructuredScaling) -> None:
        self._mix(source, calibrator)
        self.add("l", "keep", "log(mixed)")
        self.vectors["intercept"] = calibrator.intercept
        weight, terms = calibrator.weight, 1
        if weight.ndim == 1:
            self.vectors["weight"] = weight
            self.add("z", "keep", "l + weight * l + intercept")
            steep = float(np.abs(weight).max())
        else:
            self.matrix, terms = weight, self.k
            self.add("product", "product", "l")
            self.add("z", "keep", "l + product + intercept")
            steep = float(np.abs(weight).sum(axis=1).max())
        # A product is summed in another order by each target.
        digits = self.function + 2 * (terms + 3) * UNIT
        self.moved = (self.moved + digits * self._longest_log(calibrator)) * (1 + steep)

    def _map_vector(self, source: str, calibrator: VectorScaling) -> None:
        self.vectors |= {"weight": calibrator.weight, "intercept": calibrator.intercept}
        self.add("z", "keep", f"weight * {source} + intercept")

    def _longest_log(self, calibrator: Temperature | StructuredScaling) -> float:
        return log(self.k * ((calibrator.samples or 0) + 1.0)) + 1

    def _exponentiate(self, name: str, exponent: str, zero: str = "") -> None:
        """exp of a number that is at most 0; what is too small, and `zero`, is 0."""
        self.add(f"{name}_d", "each", exponent)
        self.add(name, "each", f"0.0 if {zero}{name}_d < {SMALLEST_EXPONENT!r} else exp({name}_d)")

    def map_each(self, calibrator: Platt | Beta | Isotonic | HistogramBinning) -> None:
        """`mapped`, the probability of each class by itself."""
        if isinstance(calibrator, (Isotonic, HistogramBinning)):
            self.pieces = list_pieces(calibrator)
            self.add("mapped", "look_up", "x")
            return
        if isinstance(calibrator, Platt):
            self.vectors |= {"slope": calibrator.slope, "intercept": calibrator.intercept}
            curve, steep = "slope * (log_p - log_q) + intercept", np.abs(calibrator.slope)
        else:
            self.vectors |= {"a": calibrator.a, "b": calibrator.b, "c": calibrator.c}
            curve, steep = "a * log_p - b * log_q + c", calibrator.a + calibrator.b
        floor = SMALLEST_PROBABILITY
        self.add("log_p", "each", f"log(x if x > {floor!r} else {floor!r})")
        self.add("log_q", "each", f"log(1.0 - x if 1.0 - x > {floor!r} else {floor!r})")
        self.add("curve", "each", curve)
        self.add("s", "each", "700.0 if curve > 700.0 else -700.0 if curve < -700.0 else curve")
        self.add("mapped", "keep", "1.0 / (1.0 + exp(-s))")
        self.exact = False
        self.moved += 2 * LONGEST_LOG * (float(steep.max()) + 1) * (self.function + 4 * UNIT)

    # ---- scores

    def score_logits(self, name: str) -> Program:
        """The score of `z`."""
        exact = self.moved == 0
        if name == "max_logit":
            self.add("score", "one", "peak")
            if self.flushed:
                return self._finish(UNIT, self.moved + self.tiny)
            return self._finish(0.0, 0.0 if exact else self.moved + UNIT)
        self._exponentiate("e", "z - peak", "i == top or ")
        self.add("rest", "sum", "e")
        self.add("total", "one", "1.0 + rest")
        error = self.sum + self.moved
        if name == "max_prob":
            self.add("score", "one", "1.0 / total")
            return self._finish(error)
        if name == "margin":
            self.add("second", "max", "e")
            self.add("score", "one", "(1.0 - second) / total")
            return self._finish(error, self.function + 2 * UNIT + self.moved)
        if name == "top_k_mass":
            self._add_largest("e", TOP_CLASSES - 1)
            self.add("score", "one", "(1.0 + largest) / total if largest < rest else 1.0")
            return self._finish(error, (2 * min(self.k, 100) + 32) * UNIT)
        # log(1 + rest), with all digits where rest is small
        self.add(
            "log_total", "one", "rest if total == 1.0 else log(total) * (rest / (total - 1.0))"
        )
        if name == "log_max_prob":
            self.add("score", "one", "-log_total")
            return self._finish(error + self.function + 6 * UNIT, self.tiny)
        if name == "energy":
            self.add("score", "one", "peak + log_total")
            return self._finish(UNIT, error + (log(self.k) + 1) * (self.function + 6 * UNIT))
        self.add("weighted", "sum", "0.0 if e == 0.0 else e * e_d")
        self.add("h", "one", "log_total - weighted / total")
        return self._score_entropy(name, 2 * error + 8 * UNIT, self.tiny)

    def score_probabilities(self, name: str) -> Program:
        """The score of `q`."""
        self.add("largest_q", "max", "q")
        self.add("surest", "one", "largest_q")
        if self.exact and self.k == 2:
            decimals = f"((largest_q * {COMPLEMENT_DECIMALS!r} + {WHOLE!r}) - {WHOLE!r})"
            rounded = f"{decimals} / {COMPLEMENT_DECIMALS!r}"
            within = f"joined == 1.0 and largest_q <= {COMPLEMENT_LIMIT!r}"
            self.steps[-1] = Step("surest", "one", f"{rounded} if {within} else largest_q")
        moved = self.moved
        if name == "max_prob":
            self.add("score", "one", "surest")
            return self._finish(moved)
        if name == "margin":
            self.add("second", "max", "0.0 if i == top else q")
            self.add("score", "one", "surest - second")
            return self._finish(0.0, 2 * moved)
        if name == "log_max_prob":
            self.add("score", "one", "log(surest if surest > 0.0 else 1e-300)")
            return self._finish(self.function + UNIT, moved)
        if name == "top_k_mass":
            self._add_largest("q", TOP_CLASSES)
            self.add("score", "one", "1.0 if largest > 1.0 else largest")
            return self._finish(self.sum + moved, (2 * min(self.k, 100) + 32) * UNIT)
        self.add("sum_h", "sum", "q * log(q) if q > 0.0 else 0.0")
        self.add("h", "one", "-sum_h")
        absolute = moved * (log(self.k) + 2) + self.tiny
        return self._score_entropy(name, self.sum + self.function + 4 * UNIT, absolute)

    def score_number(self) -> Program:
        """A confidence or a score itself."""
        self.add("score", "max", self.steps[-1].name)
        return self._finish(self.moved)

    def _add_largest(self, source: str, count: int) -> None:
        """`largest`, the sum of the largest numbers."""
        total = ""
        for j in range(min(count, self.k) - 1):
            self.add(f"at_{j}", "argmax", source)
            total += f"at_{j}_most + "
            self.add(f"left_{j}", "each", f"0.0 if i == at_{j} else {source}")
            source = f"left_{j}"
        self.add("last", "max", source)
        self.add("largest", "one", f"{total}last")

    def _score_entropy(self, name: str, relative: float, absolute: float) -> Program:
        """Minus the entropy `h`, or 1 minus its share of the largest one."""
        self.add("entropy", "one", "h if h > 0.0 else 0.0")
        if name == "neg_entropy":
            self.add("score", "one", "0.0 - entropy")
            return self._finish(relative, absolute)
        self.add("share", "one", f"entropy / {float(np.log(self.k))!r}")
        self.add("score", "one", "1.0 - (share if share < 1.0 else 1.0)")
        return self._finish(0.0, relative + absolute + 4 * UNIT)

    def _finish(self, relative: float, absolute: float = 0.0) -> Program:
        needed, steps = {"score", "valid", "top"}, list[Step]()
        for step in reversed(self.steps):
            if step.name in needed or f"{step.name}_most" in needed:
                steps.insert(0, step)
                needed |= list_names(step.formula)
        return Program(
            steps=tuple(steps),
            vectors=self.vectors,
            matrix=self.matrix,
            pieces=self.pieces,
            relative=relative,
            absolute=absolute,
        )


def list_names(formula: str) -> set[str]:
    """The names in a formula.

    >>> sorted(list_names("x / 2.0 - peak"))
    ['peak', 'x']
    """
    return {node.id for node in ast.walk(ast.parse(formula)) if isinstance(node, ast.Name)}


def _near(name: str, tolerance: float) -> str:
    """Whether a number is 1 but for so much."""
    return f"{name} - 1.0 <= {tolerance!r} and 1.0 - {name} <= {tolerance!r}"


def list_pieces(calibrator: Isotonic | HistogramBinning) -> tuple[Pieces, ...]:
    """The map of each class by pieces.

    >>> list_pieces(HistogramBinning(share=np.array([[0.1, 0.9]])))[0].y
    [0.1, 0.9]
    """
    made: list[Pieces] = []
    if isinstance(calibrator, HistogramBinning):
        inner = equal_range(calibrator.share.shape[1]).edges()[1:-1]
        # An edge belongs to the bin before it.
        start: list[float] = np.nextafter(inner, 2.0).tolist()
        nothing = [0.0] * (len(start) + 1)
        for share in calibrator.share.tolist():
            made.append(Pieces(start=start, x=nothing, y=share, slope=nothing))
        return tuple(made)
    for j in range(len(calibrator.start) - 1):
        x, y = calibrator.points(j)
        slope = np.concatenate(([0.0], np.diff(y) / np.diff(x), [0.0]))
        first = np.concatenate((x[:1], x))
        value = np.concatenate((y[:1], y))
        made.append(Pieces(x.tolist(), first.tolist(), value.tolist(), slope.tolist()))
    return tuple(made)
