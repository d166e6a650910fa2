"""The first page: all verdicts, how far the runs are, how intervals and verdicts are made."""

from collections.abc import Mapping, Sequence
from math import ceil, isnan

from ..claims import Claim
from ..claims.claim import MISSING, OPEN, REGIMES
from ..hours import predicted_hours
from ..kept import DEPTHS
from ..plans import STUDIES, runs_of
from ..plans.full import wanted
from ..reached import measure_reached
from ..runs import merged
from ..store import Store
from ..story import RUN
from ..tables import Table
from ..tables.table import percent
from .findings import Findings
from .networks import PAPER_NETWORKS
from .papers import PAPERS, count_verdicts, of_papers, own_questions, regime_words
from .words import AFTERWARDS, NOT_TRIED, WORDS

METHOD = """## How to read the verdicts

Every number, figure and verdict is computed from prediction files, which `python -m studies fetch` brings, and from
`studies/kept`, which also holds what came of them: without predictions the pages are made from that. Only the reasons
are written by hand; each is tied to the verdict that it would explain and appears only with it.

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


def overview(store: Store, scale: str, found: Mapping[str, Findings]) -> str:
    claims = {name: findings.claims for name, findings in found.items()}
    return "\n\n".join(part.strip() for part in [
        f"# Studies at scale {scale}",
        state(store, scale),
        networks_table(found).to_markdown(),
        full_table(store).to_markdown(),
        "## The papers",
        "\n".join(paper_lines(claims)),
        verdicts(claims).to_markdown(),
        own_table(claims).to_markdown(),
        left_open(store, scale, claims).to_markdown(),
        Table("Not tried, and why", ["paper", "where", "claim", "why"], NOT_TRIED).to_markdown(),
        METHOD,
        afterwards(claims),
        runs_table(store, scale).to_markdown(),
        FIGURES,
        STORY if store.finished(RUN) else "",
    ]) + "\n"  # fmt: skip


def networks_table(found: Mapping[str, Findings]) -> Table:
    """What stands behind the pages, before any verdict."""
    rows = [
        [
            f"[{name}]({name}.md)",
            findings.own,
            findings.full,
            findings.published,
            PAPER_NETWORKS[name],
        ]
        for name, findings in found.items()
    ]
    note = (
        "Small networks were trained here on 10,000 images for 10 to 100 epochs, so that they are right less often than "
        "the papers' are. Published outputs are those of networks that others trained to the end: predictions, or "
        f"weights that were asked here (ResNet-{', -'.join(map(str, DEPTHS))} for CIFAR-10). Eight published ImageNet "
        "networks are listed in `complexity`. Full-size networks were trained here on all 45,000 images."
    )
    header = [
        "study",
        "small networks trained here",
        "full-size networks trained here",
        "published outputs",
        "the paper's networks",
    ]
    return Table("The networks", header, rows, note)


def full_table(store: Store) -> Table:
    """The full-size trainings that were meant to be, and how far each came."""
    rows: list[list[str]] = []
    for run in wanted():
        s = run.settings
        came = measure_reached(store, run)
        states = {0: "not trained", s.epochs: "trained"}
        state = states.get(came["epoch"], f"ended at epoch {came['epoch']}")
        how = "with augmentation" if s.augment else "without augmentation"
        numbers = [percent(v, 1) if v is not None else "" for v in (came["accuracy"], came["ece"])]
        rows.append([s.network, str(s.seed), run.label, how, str(s.epochs), state, *numbers])
    note = (
        "All 45,000 images that are not held out. What is not trained to its end decides nothing: its claims rest on the "
        "other kinds of networks. Of those with augmentation accuracy and ECE are kept, and no verdict rests on them."
    )
    header = ["network", "seed", "training", "images", "epochs", "state", "right, %", "ECE, %"]
    return Table("Full-size trainings", header, rows, note)


def afterwards(claims: Mapping[str, Sequence[Claim]]) -> str:
    """A criterion that was chosen with its result in view is weaker: these are named."""
    rows = [
        [claim.text, note, claim.word]
        for begins, note in AFTERWARDS.items()
        for _, claim in of_papers(claims, list(claims))
        if claim.text.startswith(begins)
    ]
    about = "A referee should trust these less: how they are judged was chosen or changed when the numbers were known."
    header = ["claim", "what was asked before, and why it was changed", "verdict now"]
    return Table(
        "Criteria that were set with the numbers in view", header, rows, about
    ).to_markdown()


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


def verdicts(claims: Mapping[str, Sequence[Claim]]) -> Table:
    """Every claim of the papers with what each kind of network says."""
    rows = [
        [
            f"[{name}]({name}.md)",
            claim.text,
            claim.paper,
            claim.about,
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
        for name, claim in of_papers(claims, list(claims))
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
