"""One page per paper: claim, number there, here, published, verdict, picture."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..claims import Claim
from ..claims.claim import AGREES, FULL, MIXED, NOT, OPEN, PUBLISHED, REGIMES, SMALL
from ..tables import Table
from .networks import PAPER_NETWORKS
from .words import DING, FINLAY, LAVES, VEMURI

HEADER = ["claim", "there", "here, small networks", "here, full size", "published outputs",
          "networks that decide", "the paper's", "rests on", "picture", "verdict"]  # fmt: skip
LONG = "mc_temperature_resnet-14_cifar10_60_epochs_seed_0.svg"


@dataclass(frozen=True)
class Paper:
    """`pictures` are looked through for the first word that a claim has; an empty word fits all."""

    file: str
    title: str
    studies: tuple[str, ...]
    pictures: Mapping[str, Sequence[tuple[str, str]]]


PAPERS = (
    Paper(
        "paper_ding.md", f"{DING}, and Ding, Liu, Xiong & Shi 2019, which it extends",
        ("complexity", "densenet_m", "segmentation", "nuclei", "selective"),
        {
            "complexity": (("hide", "complexity_hidden.svg"), ("calibrated network", "complexity_adaptive.svg"),
                           ("adaptive", "complexity_binnings.svg"), ("", "complexity.svg")),
            "densenet_m": (("", "densenet_m.svg"),),
            "segmentation": (("temperature", "segmentation_scaled.svg"), ("", "segmentation.svg")),
            "nuclei": (("", "nuclei.svg"),),
            "selective": (("", "selective.svg"),),
        },
    ),
    Paper(
        "paper_vemuri.md", VEMURI, ("regularisation", "calibration", "shift", "promise"),
        {
            "regularisation": (("NLL", "regularisation_overfitting_resnet-20_100.svg"),
                               ("over-confident", "calibration_resnet-14_100.svg"), ("", "regularisation.svg")),
            "calibration": (("AAC", "calibration_resnet-14_100.svg"), ("", "calibration_resnet-14_100_methods.svg")),
            "shift": (("", "shift.svg"),),
            "promise": (("", "promise.svg"),),
        },
    ),
    Paper(
        "paper_finlay.md", FINLAY, ("odds",),
        {"odds": (("bins", "odds.svg"), ("mislabelled", "odds_sure_and_wrong.svg"), ("", "odds_ratio.svg"))},
    ),
    Paper("paper_laves.md", LAVES, ("mc_temperature",), {"mc_temperature": (("", LONG),)}),
)  # fmt: skip
Claims = Mapping[str, Sequence[Claim]]


def of_papers(claims: Claims, studies: Sequence[str]) -> list[tuple[str, Claim]]:
    """What the papers say; questions of our own stand apart."""
    return [(name, c) for name in studies for c in claims.get(name, ()) if not c.own]


def own_questions(claims: Claims) -> list[tuple[str, Claim]]:
    return [(name, c) for name, found in claims.items() for c in found if c.own]


def count_verdicts(claims: Sequence[Claim]) -> str:
    words = [c.word for c in claims]
    return ", ".join(
        f"{words.count(word)} {text}"
        for word, text in ((AGREES, "agree"), (NOT, "do not"), (MIXED, "mixed"), (OPEN, "open"))
    )


def found_in(claim: Claim, regime: str) -> str:
    """What the cases of one kind found that have a vote; the others stand on the study's page."""
    cases = [f"{e.found}" for e in claim.evidence if e.counts and e.regime == regime]
    return "; ".join(cases[:2]) + (f"; and {len(cases) - 2} more" if len(cases) > 2 else "")


def picture_of(paper: Paper, name: str, claim: Claim, folder: Path) -> str:
    for word, file in paper.pictures[name]:
        if word in claim.text and (folder / file).exists():
            return file
    return ""


def paper_page(paper: Paper, claims: Claims, scale: str, folder: Path) -> str:
    found = of_papers(claims, paper.studies)
    rows = [paper_row(paper, name, claim, folder) for name, claim in found]
    own = [c for name, c in own_questions(claims) if name in paper.studies]
    files = list(dict.fromkeys(picture_of(paper, name, c, folder) for name, c in found))
    reasons = [f"- {c.text}: **{c.word}**. {c.reason}" for _, c in found if c.reason]
    parts = [
        f"# {paper.title}",
        f"{len(found)} claims: {count_verdicts([c for _, c in found])}. {len(own)} questions of our own stand on the "
        "pages of the studies: "
        + ", ".join(f"[{name}]({name}.md)" for name in paper.studies)
        + ". Where the paper is "
        "wrong or silent: [errata](../errata.md).",
        Table("Verdicts", HEADER, rows).to_markdown(),
        "## Why" if reasons else "",
        "\n".join(reasons),
        "## Pictures" if any(files) else "",
        *(caption(paper, file, found, folder) for file in files if file),
        f"Made by `python -m studies all --scale {scale} --docs DIR`; how intervals and verdicts are made stands in "
        "[the overview](README.md).",
    ]
    return "\n\n".join(part.strip() for part in parts if part.strip()) + "\n"


def paper_row(paper: Paper, name: str, claim: Claim, folder: Path) -> list[str]:
    file = picture_of(paper, name, claim, folder)
    return [
        f"{claim.text} ([{name}]({name}.md))",
        claim.paper,
        found_in(claim, SMALL) or "none",
        found_in(claim, FULL) or "none",
        found_in(claim, PUBLISHED) or "none",
        claim.about,
        PAPER_NETWORKS[name],
        claim.regime or "none",
        f"[{file.rsplit('.', 1)[0]}]({file})" if file else "none",
        f"**{claim.word}**",
    ]


def caption(paper: Paper, file: str, found: Sequence[tuple[str, Claim]], folder: Path) -> str:
    """The picture with the claims that it shows."""
    shown = [c.text for name, c in found if picture_of(paper, name, c, folder) == file]
    return f"![{file.rsplit('.', 1)[0]}]({file})\n\nShows: {'; '.join(shown)}."


def write_papers(claims: Claims, scale: str, folder: Path) -> None:
    for paper in PAPERS:
        text = paper_page(paper, claims, scale, folder)
        (folder / paper.file).write_text(text, encoding="utf-8")


def regime_words(claim: Claim) -> list[str]:
    """What each kind of network says, the small ones first."""
    return [claim.word_of(r) if claim.word_of(r) in WORDS else "" for r in reversed(REGIMES)]


WORDS = (AGREES, NOT, MIXED, OPEN)
