"""All pages and figures into one folder."""

from collections.abc import Sequence
from pathlib import Path

from ..claims import CLAIMS
from ..counts import keep_counts
from ..plans import STUDIES, runs_of
from ..plans.full import wanted
from ..progress import say
from ..reached import keep_reached
from ..store import Store
from ..story import RUN
from .counterparts import counterparts_page
from .findings import Findings, find, keep_findings
from .overview import overview
from .page import page
from .papers import write_papers
from .story import write_story


def write_pages(
    names: Sequence[str], store: Store, scale: str, folder: Path, *, keep: bool = False
) -> None:
    """One page per study with its figures beside it; for all of them the overview too, and the
    story if told. `keep` leaves what they are made of for checkouts without the predictions.
    """
    if keep and store.elsewhere(runs_of(list(STUDIES), scale)):
        raise ValueError(
            "--keep needs the whole predictions: `python -m studies fetch` brings them."
        )
    folder.mkdir(parents=True, exist_ok=True)
    found: dict[str, Findings] = {}
    for name in names:
        found[name] = find(name, store, scale, folder)
        text = page(name, store, scale, found[name])
        (folder / f"{name}.md").write_text(text, encoding="utf-8")
        say(f"{name}.md, {len(found[name].figures)} figures")
    if keep:
        keep_findings(found, store, scale)
        keep_counts(store)
        keep_reached(store, wanted())
    if set(names) == set(CLAIMS):
        (folder / "README.md").write_text(overview(store, scale, found), encoding="utf-8")
        (folder / "figures.md").write_text(counterparts_page(), encoding="utf-8")
        write_papers({name: f.claims for name, f in found.items()}, scale, folder)
        if store.finished(RUN) and not store.elsewhere([RUN]):
            write_story(store, folder)
