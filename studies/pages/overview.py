"""The first page: all verdicts, how far the runs are, how intervals and verdicts are made."""

from collections.abc import Mapping, Sequence
from math import ceil, isnan

from ..claims import Claim
from ..claims.claim import MISSING, OPEN, REGIMES
from ..hours import predicted_hours
from ..plans import STUDIES, runs_of
from ..runs import merged
from ..store import Store
from ..story import RUN
from ..tables import Table
from .networks import PAPER_NETWORKS, describe_networks, networks_table
from .papers import PAPERS, count_verdicts, of_papers, own_questions, regime_words
from .words import WORDS

METHOD = """## How to read the verdicts

Every number, figure and verdict is computed from the files in `studies/predictions` and `studies/kept`. Only the
reasons are written by hand; each is tied to the verdict that it would explain and appears only with it.

- **agrees** / **does not agree**: the 95 % interval excludes the contrary. Where a claim names a margin ("nearly
  zero", "at least"), it must lie wholly on one side of that.
- **cannot be decided here**: the interval leaves both open. Not finding a difference is not proof of none.
- A claim rests on small networks, on full-size ones trained here, or on published outputs. The most telling kind
  decides, and a majority of other cases does not: published outputs, but where the paper's network is unlike them (it
  has learnt its images by heart, or sizes are compared that the published ones do not span), our own.
- A claim has several cases. It agrees, or does not, where more than half of the cases of that kind say so and none says
  the contrary; where some agree and some do not it is **mixed**. The page of a study names the cases that stay open
  beside a verdict of the others.
- Slopes over network size: one point per network (the mean of its repeats), a level of its own for each family,
  Student's interval. They cover other trainings and other networks of these families.
- Means over networks: the difference on each network. The interval adds the variance over the networks and that over
  bootstrap draws of the images, the same for all networks, with Satterthwaite's degrees of freedom, and is never
  narrower than Student's over the networks. It covers other trainings and other images; `tests/studies/test_means.py`
  checks that with the truth known. The networks behind a mean are listed with verdicts in brackets, which do not count.
- Paired differences: both sides on the same resampled test images. They cover other images, not another training.
- U-Nets of one family differ in nothing but their width: there each training is a point of its own.
- Where the paper prints a difference and names no margin, the margin here is smaller than that difference.
- Ratios of spreads and correlations: bootstrap over networks, settings or images, as the case says.
"""

TIMES = (
    "What it would take is read from the intervals: so many times the networks, trainings or images that the open case "
    "is drawn over, if what was found is so."
)
MANY = 100
FIGURES = (
    "Every figure and table of the five papers with its counterpart here: [figures](figures.md)."
)
STORY = "One network from training to a promise, with `howsure.torch`: [story](story.md)."


def overview(store: Store, scale: str, claims: Mapping[str, Sequence[Claim]]) -> str:
    return "\n\n".join(part.strip() for part in [
        f"# Studies at scale {scale}",
        state(store, scale),
        networks_table(store, scale).to_markdown(),
        "## The papers",
        "\n".join(paper_lines(claims)),
        verdicts(store, scale, claims).to_markdown(),
        own_table(claims).to_markdown(),
        left_open(store, scale, claims).to_markdown(),
        METHOD,
        runs_table(store, scale).to_markdown(),
        FIGURES,
        STORY if store.finished(RUN) else "",
    ]) + "\n"  # fmt: skip


def state(store: Store, scale: str) -> str:
    runs = runs_of(list(STUDIES), scale)
    left = store.unfinished(runs)
    if not left:
        return f"All {len(runs)} networks are trained."
    hours = sum(predicted_hours(run) for run in left)
    done = f"{len(runs) - len(left)} of {len(runs)} networks are trained"
    return f"{done}; about {hours:.1f} hours on one idle core are left."


def paper_lines(claims: Mapping[str, Sequence[Claim]]) -> list[str]:
    """One line per paper: its page, and how its claims came out."""
    lines: list[str] = []
    for paper in PAPERS:
        found = [c for _, c in of_papers(claims, paper.studies)]
        counts = count_verdicts(found)
        lines.append(f"- [{paper.title}]({paper.file}): {len(found)} claims, {counts}.")
    return [*lines, "- Where the papers are wrong or silent: [errata](../errata.md)."]


def verdicts(store: Store, scale: str, claims: Mapping[str, Sequence[Claim]]) -> Table:
    """Every claim of the papers with what each kind of network says."""
    rows = [
        [
            f"[{name}]({name}.md)",
            claim.text,
            claim.paper,
            describe_networks(name, claim, store, scale),
            PAPER_NETWORKS[name],
            *regime_words(claim),
            f"**{claim.word}**",
        ]
        for name, claim in of_papers(claims, list(claims))
    ]
    header = [
        "study",
        "claim",
        "the paper",
        "networks that decide",
        "the paper's",
        *reversed(REGIMES),
        "verdict",
    ]
    return Table("Verdicts", header, rows, "The most telling kind of network decides.")


def own_table(claims: Mapping[str, Sequence[Claim]]) -> Table:
    rows = [
        [f"[{name}]({name}.md)", claim.text, claim.counts(), claim.regime or "none", claim.word]
        for name, claim in own_questions(claims)
    ]
    header = ["study", "question", "cases that agree / do not / are open", "rests on", "answer"]
    return Table(
        "Our own questions",
        header,
        rows,
        "No paper says these; they are not counted with the papers.",
    )


def left_open(store: Store, scale: str, claims: Mapping[str, Sequence[Claim]]) -> Table:
    """Claims without an answer, and what it would take: the networks that their study still lacks."""
    chosen = [
        (name, claim)
        for name, found in claims.items()
        for claim in found
        if claim.word in (OPEN, MISSING)
    ]
    rows = [
        [
            f"[{name}]({name}.md)",
            c.text,
            c.word,
            would_take(c),
            lacking(store, scale, name),
            c.reason,
        ]
        for name, c in chosen
    ]
    words = [claim.word for _, claim in chosen]
    note = f"{words.count(OPEN)} claims are open, {words.count(MISSING)} wait for their networks."
    header = ["study", "claim", "state", "it would take", "networks still to train", "why"]
    return Table("Open, and what it would take", header, rows, f"{note} {TIMES}")


def would_take(claim: Claim) -> str:
    if claim.word == MISSING:
        return "its networks"
    if isnan(claim.times):
        return "more of everything"
    return (
        "more than a hundred times as much"
        if claim.times > MANY
        else f"{ceil(claim.times)} times as much"
    )


def lacking(store: Store, scale: str, name: str) -> str:
    left = store.unfinished(runs_of([name], scale))
    if not left:
        return "none"
    return f"{len(left)} of {len(runs_of([name], scale))}, about {sum(map(predicted_hours, left)):.1f} hours on one core"


def runs_table(store: Store, scale: str) -> Table:
    """Each study with what it asks and how far it is."""
    rows: list[list[str]] = []
    for name, study in STUDIES.items():
        runs = merged(study(scale))
        done = sum(store.finished(run) for run in runs)
        rows.append(
            [
                f"[{name}]({name}.md)",
                WORDS[name].question,
                WORDS[name].source,
                f"{done} of {len(runs)}",
            ]
        )
    return Table("The studies", ["study", "question", "after", "networks finished"], rows)
