"""What the pages of a study are made of: its tables, its claims with their evidence, its pictures,
what its networks are. Computed from the whole predictions where these are here, else read from
`kept/`, where `--keep` has left it with every number as it was computed.
"""

import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from ..claims import CLAIMS, Claim, Evidence
from ..figures import write_figures
from ..plans import runs_of
from ..provided import note
from ..store import Store
from ..tables import TABLES, Table
from ..tables.results import missing
from .networks import describe_networks, describe_own, describe_published

PICTURES = Path(__file__).parents[2] / "docs" / "studies"


@dataclass(frozen=True)
class Findings:
    """`own`, `full` and `published` say what the networks are, `provided` which published sets were at
    hand; `figures` are names of files beside the page."""

    claims: Sequence[Claim]
    tables: Sequence[Table]
    figures: Sequence[str]
    own: str
    full: str
    published: str
    provided: str


def find(name: str, store: Store, scale: str, folder: Path) -> Findings:
    """With the figures in this folder: drawn, or as they were drawn when the findings were kept."""
    if store.elsewhere(runs_of([name], scale)):
        found = read_findings(kept_file(store, scale, name))
        copy_figures(found.figures, folder)
        return found
    return compute_findings(name, store, scale, folder)


def compute_findings(name: str, store: Store, scale: str, folder: Path) -> Findings:
    claims = [
        replace(claim, about=describe_networks(name, claim, store, scale), networks=())
        for claim in CLAIMS[name](store, scale)
    ]
    figures = write_figures(name, store, scale, folder)
    return Findings(
        claims=claims,
        tables=TABLES[name](store, scale),
        figures=[path.name for path in figures],
        own=describe_own(name, store, scale),
        full=describe_own(name, store, scale, full=True),
        published=describe_published(name),
        provided=note(),
    )


def copy_figures(names: Sequence[str], folder: Path) -> None:
    for name in names:
        if not (folder / name).exists():
            shutil.copyfile(PICTURES / name, folder / name)


def kept_file(store: Store, scale: str, name: str) -> Path:
    return store.root / "kept" / f"findings_{scale}" / f"{name}.json"


def keep_findings(found: Mapping[str, Findings], store: Store, scale: str) -> None:
    for name, findings in found.items():
        path = kept_file(store, scale, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        text = json.dumps(asdict(findings), indent=1, default=float, allow_nan=True)
        path.write_text(text + "\n", encoding="utf-8")


def read_findings(path: Path) -> Findings:
    if not path.exists():
        raise ValueError(
            f"the predictions are not here, and {path.name} does not stand for them: "
            "`python -m studies fetch` brings them."
        )
    found = json.loads(path.read_text(encoding="utf-8"))
    claims = [
        Claim(**{**claim, "evidence": [read_evidence(e) for e in claim["evidence"]]})
        for claim in found.pop("claims")
    ]
    return Findings(claims=claims, tables=[Table(**t) for t in found.pop("tables")], **found)


def read_evidence(found: dict[str, object]) -> Evidence:
    return Evidence(**{**found, "edges": tuple(found["edges"])})


def report(name: str, store: Store, scale: str) -> str:
    """All tables of one study as Markdown."""
    runs = runs_of([name], scale)
    if store.elsewhere(runs):
        tables = read_findings(kept_file(store, scale, name)).tables
    else:
        tables = TABLES[name](store, scale)
    left = missing(store, runs)
    texts = [table.to_markdown() for table in tables]
    return "\n".join([f"# {name}, scale {scale}\n", *([f"{left}\n"] if left else []), *texts])
