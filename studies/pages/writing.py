"""All pages and figures into one folder."""

from collections.abc import Sequence
from pathlib import Path

from ..claims import CLAIMS, Claim
from ..figures import write_figures
from ..progress import say
from ..store import Store
from ..story import RUN
from ..tables import TABLES
from .counterparts import counterparts_page
from .overview import overview
from .page import page
from .papers import write_papers
from .story import write_story


def write_pages(names: Sequence[str], store: Store, scale: str, folder: Path) -> None:
    """One page per study with its figures beside it; for all of them the overview too, and the
    story if told.
    """
    folder.mkdir(parents=True, exist_ok=True)
    claims: dict[str, list[Claim]] = {}
    for name in names:
        claims[name] = CLAIMS[name](store, scale)
        figures = write_figures(name, store, scale, folder)
        text = page(name, store, scale, claims[name], TABLES[name](store, scale), figures)
        (folder / f"{name}.md").write_text(text, encoding="utf-8")
        say(f"{name}.md, {len(figures)} figures")
    if set(names) == set(CLAIMS):
        (folder / "README.md").write_text(overview(store, scale, claims), encoding="utf-8")
        (folder / "figures.md").write_text(counterparts_page(), encoding="utf-8")
        write_papers(claims, store, scale, folder)
        if store.finished(RUN):
            write_story(store, folder)
