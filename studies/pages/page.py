"""One page per study."""

from collections.abc import Sequence

from ..claims import Claim
from ..claims.claim import AGREES, MISSING, MIXED, NOT, OPEN, evidence_table, summary_table
from ..plans import STUDIES
from ..runs import Run, merged
from ..settings import Settings
from ..store import Store
from ..tables.results import missing, progress
from .findings import Findings
from .words import DATA, WORDS

HEADINGS = {
    AGREES: "Agrees",
    NOT: "Does not agree",
    MIXED: "Mixed",
    OPEN: "Cannot be decided here",
    MISSING: "Not trained yet",
}
OPTIMISERS = {"sgd": "SGD", "adamw": "AdamW"}


def page(name: str, store: Store, scale: str, found: Findings) -> str:
    """Verdicts first, then what they rest on, then all tables and figures."""
    words, claims = WORDS[name], found.claims
    runs = merged(STUDIES[name](scale))
    parts = [
        f"# {name}: {words.question}",
        f"After {words.source}. {progress(store, runs)} {missing(store, runs)}",
        outcome([c for c in claims if not c.own]),
        *verdict_tables(claims),
        "## Setting",
        "\n".join(f"- {line}" for line in settings(name, runs, found.provided)),
        *(f"![{file.removesuffix('.svg')}]({file})" for file in found.figures),
        *(table.to_markdown() for table in found.tables),
        evidence_table(claims).to_markdown(),
        f"Made by `python -m studies all --scale {scale} --docs DIR`; how intervals and verdicts are made stands in "
        "[the overview](README.md).",
    ]
    return "\n\n".join(part.strip() for part in parts) + "\n"


def verdict_tables(claims: Sequence[Claim]) -> list[str]:
    """What papers say and what we ask are two tables; an empty one is left out."""
    said, asked = [c for c in claims if not c.own], [c for c in claims if c.own]
    tables = [summary_table(said)] if said else []
    tables += [summary_table(asked, "Our own questions")] if asked else []
    return [table.to_markdown() for table in tables]


def outcome(claims: Sequence[Claim]) -> str:
    """The claims in words, under what came out, with the reason that is given for it."""
    found = {heading: [c for c in claims if c.word == word] for word, heading in HEADINGS.items()}
    return "\n\n".join(
        "\n".join([f"**{heading}**", "", *(f"- {c.text}. {c.reason}".rstrip() for c in chosen)])
        for heading, chosen in found.items()
        if chosen
    )


def settings(name: str, runs: list[Run], provided: str) -> list[str]:
    """How the paper worked, how we do, and where a number beside ours comes from."""
    words = WORDS[name]
    lines = [
        f"The paper: {words.paper_setting}",
        f"Here: {setting(runs)}",
        f"Values: {words.values}",
    ]
    return [*lines, provided] if words.needs_provided else lines


def setting(runs: list[Run]) -> str:
    """What was asked for here, read from the runs themselves."""
    s = [run.settings for run in runs]
    networks = ", ".join(dict.fromkeys(one.network for one in s))
    data = " and ".join(DATA[name] for name in dict.fromkeys(one.data for one in s))
    sizes = " and ".join(f"{n:,}" for n in sorted({one.train_size for one in s}))
    repeats = 1 + max(one.seed for one in s)
    times = "trained once" if repeats == 1 else f"trained up to {repeats} times"
    return f"{networks}; {data}, {sizes} training images, {times}; {recipes(s)}."


def recipes(found: list[Settings]) -> str:
    """How they were trained; network by network where they differ."""
    networks: dict[str, list[str]] = {}
    for s in found:
        recipe = (
            f"{OPTIMISERS[s.optimiser]}, {s.epochs} epochs, batches of {s.batch}, rate {s.lr:g}"
        )
        networks.setdefault(recipe, []).append(s.network)
    if len(networks) == 1:
        return f"all with {next(iter(networks))}"
    return "; ".join(
        f"{', '.join(dict.fromkeys(names))} with {recipe}" for recipe, names in networks.items()
    )
