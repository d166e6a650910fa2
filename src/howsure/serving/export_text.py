"""The steps of an exported policy in the words of C99, JavaScript and SQL."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from itertools import chain
from math import frexp, inf

from howsure._core import strict_json
from howsure._core.checks import InputError
from howsure._core.frozen import frozen
from howsure.serving.export_steps import Pieces, Program, Step, list_names
from howsure.serving.exports import MAX_SQL_COLUMNS, Export, list_evidence

SIGNS: dict[type[ast.AST], str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/",
    ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=",
}  # fmt: skip
EXACT_DIGITS = 15  # of a literal that SQLite reads exactly
MAX_SQL_PIECES = 1000  # of all maps of an expression


@frozen
class SqlDialect:
    """How a data base calls the largest of several numbers, types and infinity."""

    largest: str
    real: str
    text: str
    infinity: str
    fence: str = ""  # keeps a query from being put into the one around it, once for each use
    run: bool = False  # whether our tests run it, or only parse it


SQL_DIALECTS = {
    "sqlite": SqlDialect("max", "", "TEXT", "9e999", fence=" LIMIT 1", run=True),
    "duckdb": SqlDialect("greatest", "DOUBLE", "TEXT", "CAST('Infinity' AS DOUBLE)", run=True),
    "postgres": SqlDialect(
        "greatest",
        "double precision",
        "TEXT",
        "CAST('Infinity' AS double precision)",
        fence=" OFFSET 0",
        run=True,
    ),
    "snowflake": SqlDialect("greatest", "DOUBLE", "VARCHAR", "CAST('inf' AS DOUBLE)"),
    "bigquery": SqlDialect("greatest", "FLOAT64", "STRING", "CAST('inf' AS FLOAT64)"),
    "redshift": SqlDialect(
        "greatest", "double precision", "VARCHAR", "CAST('inf' AS double precision)"
    ),
    "databricks": SqlDialect("greatest", "DOUBLE", "STRING", "CAST('Infinity' AS DOUBLE)"),
}


@frozen(eq=False)
class Words:
    """How a language writes an expression."""

    number: Callable[[float], str]
    infinity: str
    choice: str
    junctions: tuple[str, str]  # and, or
    equal: tuple[str, str]  # is, is not
    functions: dict[str, str]

    def write(self, formula: str, name: Callable[[str], str]) -> str:
        """The text of a formula; `name` says what the name of a step or constant is called."""
        return self._write(ast.parse(formula, mode="eval").body, name)

    def _write(self, node: ast.expr, name: Callable[[str], str]) -> str:
        inner = partial(self._write, name=name)
        match node:
            case ast.Name(id="inf"):
                return self.infinity
            case ast.Name():
                return name(node.id)
            case ast.Constant(value=float() as value):
                return self.number(value)
            case ast.Constant():
                return str(node.value)
            case ast.UnaryOp():
                return f"(-{inner(node.operand)})"
            case ast.BinOp():
                return f"({inner(node.left)} {SIGNS[type(node.op)]} {inner(node.right)})"
            case ast.Compare():
                sign = SIGNS.get(type(node.ops[0])) or self.equal[type(node.ops[0]) is ast.NotEq]
                return f"{inner(node.left)} {sign} {inner(node.comparators[0])}"
            case ast.BoolOp():
                junction = f" {self.junctions[type(node.op) is ast.Or]} "
                return f"({junction.join(map(inner, node.values))})"
            case ast.IfExp():
                test, yes, no = map(inner, (node.test, node.body, node.orelse))
                return self.choice.format(test=test, yes=yes, no=no)
            case ast.Call(func=ast.Name(id=str(function))):
                return f"{self.functions[function]}({inner(node.args[0])})"
            case _:
                raise AssertionError(ast.dump(node))


# ---- C and JavaScript


@frozen(eq=False)
class Language:
    """What C and JavaScript write in words of their own."""

    words: Words
    number: str  # how a variable is declared
    whole: str
    array: str
    table: str
    look_up: str


C_WORDS = Words(
    number=float.hex,
    infinity="INFINITY",
    choice="({test} ? {yes} : {no})",
    junctions=("&&", "||"),
    equal=("==", "!="),
    functions={"exp": "exp", "log": "log"},
)
C = Language(
    words=C_WORDS,
    number="double",
    whole="int",
    array="  double {name}[{size}];",
    table="static const {kind} howsure_{name}[] = {{{values}}};",
    look_up="static double howsure_look_up(double p, int i)",
)
C_SINGLE = replace(
    C, words=replace(C_WORDS, functions={"exp": "howsure_exp", "log": "howsure_log"})
)
JAVASCRIPT = Language(
    words=replace(
        C_WORDS,
        number=repr,
        infinity="Infinity",
        equal=("===", "!=="),
        functions={"exp": "Math.exp", "log": "Math.log"},
    ),
    number="let",
    whole="let",
    array="  const {name} = new Float64Array({size});",
    table="const howsure_{name} = [{values}];",
    look_up="function howsure_look_up(p, i)",
)


@frozen(eq=False)
class Loops:
    """A program as loops over the classes."""

    program: Program
    size: int
    language: Language

    def write(self) -> str:
        """The lines of all steps; numbers for each class that are not kept are made in each loop."""
        each: dict[str, str] = {}
        lines: list[str] = []
        for step in self.program.steps:
            if step.way == "each":
                each[step.name] = step.formula
                continue
            value = self._value(step.formula)
            if step.way == "one":
                lines.append(f"  {self.language.number} {step.name} = {value};")
                continue
            needed = list_names(step.formula)
            for name in reversed(each):
                if name in needed:
                    needed |= list_names(each[name])
            before, inside = self._write_loop(step, value)
            lines += [*before, f"  for (i = 0; i < {self.size}; i++) {{"]
            made = {name: self._value(each[name]) for name in each if name in needed}
            lines += [f"    {self.language.number} {name} = {made[name]};" for name in made]
            lines += [f"    {line}" for line in inside]
            lines.append("  }")
        return "\n".join(lines)

    def _value(self, formula: str) -> str:
        kept = {s.name for s in self.program.steps if s.way in ("keep", "look_up", "product")}

        def name(word: str) -> str:
            if word in self.program.vectors:
                return f"howsure_{word}[i]"
            return f"{word}[i]" if word == "v" or word in kept else word

        return self.language.words.write(formula, name)

    def _write_loop(self, step: Step, value: str) -> tuple[list[str], list[str]]:
        """What stands before a loop and at the end of its body."""
        name, number = step.name, self.language.number
        match step.way:
            case "sum":  # which carries along what was rounded off
                return [f"  {number} {name} = 0.0, {name}_off = 0.0;"], [
                    f"{number} term = {value} - {name}_off;",
                    f"{number} next = {name} + term;",
                    f"{name}_off = (next - {name}) - term;",
                    f"{name} = next;",
                ]
            case "max":
                before = [f"  {number} {name} = 0.0;"]
                return before, [
                    f"{number} now = {value};",
                    f"if (i == 0 || now > {name}) {name} = now;",
                ]
            case "argmax":
                before = [f"  {self.language.whole} {name} = 0;", f"  {number} {name}_most = 0.0;"]
                return before, [
                    f"{number} now = {value};",
                    f"if (i == 0 || now > {name}_most) {{ {name}_most = now; {name} = i; }}",
                ]
            case "product":
                term = f"howsure_matrix[i * {self.size} + j] * {step.formula}[j]"
                return [self.language.array.format(name=name, size=self.size)], [
                    f"{name}[i] = 0.0;",
                    f"for (j = 0; j < {self.size}; j++) {name}[i] += {term};",
                ]
            case _:
                if step.way == "look_up":
                    value = f"howsure_look_up({value}, i)"
                return [self.language.array.format(name=name, size=self.size)], [
                    f"{name}[i] = {value};"
                ]

    def write_numbers(self, values: Iterable[float]) -> str:
        """A list of numbers."""
        words, infinity = self.language.words, self.language.words.infinity
        special = {inf: infinity, -inf: f"-{infinity}"}
        return ", ".join(special.get(x) or words.number(x) for x in values)

    def write_tables(self) -> str:
        """The constants of a calibrator, and the function that finds a piece of a map."""
        program = self.program
        tables: dict[str, Iterable[float]] = {k: v.tolist() for k, v in program.vectors.items()}
        if program.matrix is not None:
            tables["matrix"] = program.matrix.ravel().tolist()
        begin = [0]
        for piece in program.pieces:
            begin.append(begin[-1] + len(piece.start))
        if program.pieces:
            for name in Pieces._fields:
                tables[name] = chain.from_iterable(getattr(piece, name) for piece in program.pieces)
        lines: list[str] = []
        for name, values in tables.items():
            text = self.write_numbers(values) or "0"
            lines.append(self.language.table.format(kind="double", name=name, values=text))
        if program.pieces:
            text = ", ".join(map(str, begin))
            lines.append(self.language.table.format(kind="int", name="begin", values=text))
            whole = self.language.whole
            lines.append(LOOK_UP.format(head=self.language.look_up, whole=whole))
        return "\n".join(lines)


LOOK_UP = """
{head} {{
  {whole} low = howsure_begin[i], high = howsure_begin[i + 1];
  while (low < high) {{
    {whole} middle = (low + high) >> 1;
    if (howsure_start[middle] <= p) low = middle + 1;
    else high = middle;
  }}
  low += i; /* each map has one piece more than starts */
  return howsure_slope[low] * (p - howsure_x[low]) + howsure_y[low];
}}
"""


def write_c(export: Export) -> str:
    """One C99 header: no allocation, and no call but of exp and log, or of expf and logf."""
    single = export.precision == "float"
    loops = Loops(export.program, export.size, C_SINGLE if single else C)
    names: list[str] = []
    for key in export.policy.keys:
        if "\0" in key:
            raise InputError(f"the segment {key!r} holds a NUL, which ends a string of C.")
        # Bytes of UTF-8; a question mark could begin a trigraph.
        letters = key.encode("utf-8", "surrogatepass")
        plain = [f"\\{c:03o}" if c < 32 or c > 126 or c in b'"\\?' else chr(c) for c in letters]
        names.append(f'"{"".join(plain)}"')
    return C_TEMPLATE.format(
        head="\n".join(f" * {line}" for line in list_evidence(export)),
        functions=C_SINGLE_FUNCTIONS * single,
        values=loops.write_numbers(export.thresholds),
        names=", ".join(names) or '""',
        count=len(names),
        real=export.precision,
        tables=loops.write_tables(),
        j=", j" * (export.program.matrix is not None),
        known=f"segment >= 0 && segment < {len(names)}" if names else "1",
        place="segment" if names else "0",
        answer=_name_answer(export),
        body=loops.write(),
    )


def write_javascript(export: Export) -> str:
    """A JavaScript module with `decide(values, segment)`."""
    loops = Loops(export.program, export.size, JAVASCRIPT)
    return JS_TEMPLATE.format(
        head="\n".join(f" * {line}" for line in list_evidence(export)),
        values=loops.write_numbers(export.thresholds),
        names=", ".join(strict_json.dump_line(key) for key in export.policy.keys),
        size=export.size,
        tables=loops.write_tables(),
        answer=_name_answer(export),
        body=loops.write(),
    )


def _name_answer(export: Export) -> str:
    """The step that says which class it is; -1 where nobody knows."""
    if export.size > 1:
        return "top"
    return "-1"


C_SINGLE_FUNCTIONS = """
static inline double howsure_exp(double x) {
  const float near = (float)x;
  return (double)expf(near) * (1.0 + (x - (double)near));
}

static inline double howsure_log(double x) {
  const float near = (float)x;
  return (double)logf(near) + (x - (double)near) / (double)near;
}
"""

C_TEMPLATE = """/*
{head}
 * v: one number for each class, or one score; whatever is not a number defers. segment: from howsure_segment.
 */
#ifndef howsure_policy_h
#define howsure_policy_h
#include <math.h>
#ifdef __FAST_MATH__
#error "-ffast-math changes decisions; compile this without it"
#endif
#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF
#endif

typedef struct {{ int accept; int answer; double score; double threshold; int known; }} howsure_decision;
static const double howsure_thresholds[] = {{{values}}};
static const char *const howsure_names[] = {{{names}}};
{functions}{tables}
/* The number of a segment; that of an unknown one is {count}. */
static inline int howsure_segment(const char *name) {{
  int i, j;
  for (i = 0; i < {count}; i++) {{
    for (j = 0; name[j] != 0 && howsure_names[i][j] == name[j]; j++) {{ }}
    if (howsure_names[i][j] == name[j]) return i;
  }}
  return {count};
}}

static inline howsure_decision howsure_decide(const {real} *v, int segment) {{
  int i{j};
{body}
  howsure_decision made;
  (void)segment;
  made.known = {known};
  made.answer = {answer};
  made.score = score;
  made.threshold = howsure_thresholds[made.known ? {place} : {count}];
  made.accept = valid == 1.0 && score >= made.threshold && made.threshold < INFINITY;
  return made;
}}
#endif
"""

JS_TEMPLATE = """/*
{head}
 * values: an array of one number for each class, or of one score. Whatever is not a number defers.
 */
const thresholds = [{values}];
const names = [{names}];
{tables}
export function decide(values, segment) {{
  // null and text would be taken for numbers.
  const numbers = values.length === {size} && Array.from(values).every((x) => typeof x === "number");
  const v = numbers ? values : new Float64Array({size}).fill(NaN);
  let i, j;
{body}
  const place = names.indexOf(segment);
  const known = place >= 0 || names.length === 0;
  const threshold = thresholds[place >= 0 ? place : names.length];
  const accept = valid === 1 && score >= threshold && threshold < Infinity;
  let reason = accept ? "the score reaches its threshold" : "the score is below its threshold";
  if (valid !== 1) reason = "these are not numbers that the policy was made for";
  else if (!known) reason = "this segment has no threshold of its own";
  return {{ accept, answer: {answer}, score, threshold, known, reason }};
}}
"""


# ---- SQL


def write_sql(export: Export) -> str:
    """An expression over the columns logit_0 … or prob_0 …, confidence or score: 'accept' or
    'defer', and 'defer: unknown segment'.

    Each step is a query on the one before, so that no number is computed twice.
    """
    program, k, dialect = export.program, export.size, SQL_DIALECTS[export.dialect]
    if k > MAX_SQL_COLUMNS:
        raise InputError(
            f"the policy has {k} classes; at most {MAX_SQL_COLUMNS} columns are exported."
        )
    if sum(len(piece.y) for piece in program.pieces) > MAX_SQL_PIECES:
        raise InputError(
            f"the calibrator has more than {MAX_SQL_PIECES:,} pieces, too many for an expression; "
            "export it to another language."
        )
    for key in export.policy.keys:
        if "\0" in key or not is_unicode(key):
            raise InputError(f"the segment {key!r} holds a letter that SQL cannot; rename it.")
    odd = [key for key in export.policy.keys if "'" in key or "\\" in key]
    if odd and not dialect.run:
        raise InputError(
            f"the segment {odd[0]!r} holds a quote or a backslash, and how {export.dialect} reads it "
            "is not tested; rename the segment."
        )
    number = _write_sqlite_number if export.dialect == "sqlite" else _write_sql_number
    words = Words(
        number=number,
        infinity=dialect.infinity,
        choice="CASE WHEN {test} THEN {yes} ELSE {no} END",
        junctions=("AND", "OR"),
        equal=("=", "<>"),
        functions={"exp": "exp", "log": "ln"},
    )
    columns = [export.given]
    if k > 1:
        columns = [f"{export.given.removesuffix('s')}_{i}" for i in range(k)]
    if dialect.real:
        columns = [f"CAST({column} AS {dialect.real})" for column in columns]
    listed = ", ".join(f"{column} AS hs_v_{i}" for i, column in enumerate(columns))
    layers = SqlLayers(program, k, words, dialect.largest)
    queries = [f"SELECT {listed}{dialect.fence}"]
    for step in program.steps:
        columns = [layers.write(step)]
        if step.way == "argmax":
            columns.insert(0, layers.write(Step(f"{step.name}_most", "max", step.formula)))
        for column in columns:
            queries.append(f"SELECT *, {column} FROM hs_made_{len(queries) - 1}{dialect.fence}")
    source = ",\n".join(f"hs_made_{i} AS ({query})" for i, query in enumerate(queries))
    column = f"CAST({export.policy.by} AS {dialect.text})"
    own: list[str] = []
    for key, t in zip(export.policy.keys, export.thresholds, strict=False):
        # NaN is above infinity in PostgreSQL and DuckDB, and NULL in SQLite: `valid` keeps it out.
        own.append(f" WHEN {column} = {_quote(key)} AND {_reach(t, number)} THEN 'accept'")
    listed = ", ".join(map(_quote, export.policy.keys))
    cases, rest = "".join(own), _reach(export.thresholds[-1], number)
    if own:
        rest += f" AND ({column} IN ({listed})) IS NOT TRUE"
    unknown = ""
    if own:
        unknown = f" WHEN ({column} IN ({listed})) IS NOT TRUE THEN 'defer: unknown segment'"
    head = "\n".join(f"-- {line}" for line in list_evidence(export))
    if not dialect.run:
        head += f"\n-- Not run: this was never run by {export.dialect}, only parsed."
    decide = f"CASE{cases} WHEN {rest} THEN 'accept'{unknown} ELSE 'defer' END"
    return f"{head}\n(WITH {source}\nSELECT {decide} FROM hs_made_{len(queries) - 1})\n"


def _reach(t: float, number: Callable[[float], str]) -> str:
    """Whether a score reaches a threshold."""
    if t == inf:
        return "1 = 0"
    if t == -inf:
        return "hs_valid = 1"
    return f"hs_valid = 1 AND hs_score >= {number(t)}"


def is_unicode(text: str) -> bool:
    """Whether UTF-8 can hold it; half of a surrogate pair it cannot."""
    return text.isascii() or not any("\ud800" <= c <= "\udfff" for c in text)


def _quote(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _write_sql_number(x: float) -> str:
    """With an exponent: a literal without one is a decimal number, which is rounded otherwise."""
    text = repr(float(x))
    return text if "e" in text else f"{text}e0"


def _write_sqlite_number(x: float) -> str:
    """SQLite reads long literals to 15 digits or so; whole numbers and powers of two are exact.

    >>> _write_sqlite_number(0.25), _write_sqlite_number(0.1 + 0.2)
    ('0.25e0', '(5404319552844596 * 1.0 / 4503599627370496 / 4)')
    """
    text = _write_sql_number(x)
    digits, _, power = text.partition("e")
    if (
        len(digits.strip("-0.").replace(".", "")) <= EXACT_DIGITS
        and abs(int(power)) <= EXACT_DIGITS
    ):
        return text
    fraction, exponent = frexp(x)
    exponent -= 53
    made = f"({int(fraction * 2**53)} * 1.0"
    sign = "/" if exponent < 0 else "*"
    for left in range(abs(exponent), 0, -52):
        made += f" {sign} {2 ** min(left, 52)}"
    return made + ")"


@frozen(eq=False)
class SqlLayers:
    """The steps of a program as columns of queries around each other."""

    program: Program
    k: int
    words: Words
    largest: str

    def write(self, step: Step) -> str:
        """The columns of a step."""
        name, places = step.name, range(self.k)
        if step.way == "one":
            return f"{self._value(step.formula, 0)} AS hs_{name}"
        values = [self._value(step.formula, i) for i in places]
        match step.way:
            case "sum":
                return f"{' + '.join(values)} AS hs_{name}"
            case "max":
                made = values[0]
                if self.k > 1:
                    made = f"{self.largest}({', '.join(values)})"
                return f"{made} AS hs_{name}"
            case "argmax":
                most = f"hs_{name}_most"
                cases = " ".join(
                    f"WHEN {value} = {most} THEN {i}" for i, value in enumerate(values)
                )
                return f"CASE {cases} END AS hs_{name}"
            case "look_up":
                values = [self._look_up(value, i) for i, value in enumerate(values)]
            case "product":
                matrix = self.program.matrix
                assert matrix is not None
                rows: list[list[float]] = matrix.tolist()
                terms = [
                    [f"{self.words.number(w)} * {x}" for w, x in zip(row, values, strict=True)]
                    for row in rows
                ]
                values = [" + ".join(row) for row in terms]
            case _:
                pass
        return ", ".join(f"{value} AS hs_{name}_{i}" for i, value in enumerate(values))

    def _value(self, formula: str, i: int) -> str:
        vectors = self.program.vectors
        each = {
            s.name for s in self.program.steps if s.way in ("each", "keep", "look_up", "product")
        }

        def name(word: str) -> str:
            if word == "i":
                return str(i)
            if word in vectors:
                return self.words.number(float(vectors[word][i]))
            return f"hs_{word}_{i}" if word == "v" or word in each else f"hs_{word}"

        return self.words.write(formula, name)

    def _look_up(self, p: str, i: int) -> str:
        piece, number = self.program.pieces[i], self.words.number
        cases: list[str] = []
        for j in reversed(range(len(piece.y))):
            value = number(piece.y[j])
            if piece.slope[j]:
                value = f"{number(piece.slope[j])} * ({p} - {number(piece.x[j])}) + {value}"
            if j:
                cases.append(f"WHEN {p} >= {number(piece.start[j - 1])} THEN {value}")
            else:
                cases.append(f"ELSE {value}")
        if len(cases) == 1:
            return cases[0].removeprefix("ELSE ")
        return f"CASE {' '.join(cases)} END"


TEXT_EXPORTS: dict[str, Callable[[Export], str]] = {
    "c": write_c,
    "js": write_javascript,
    "sql": write_sql,
}
