"""`python -m studies NAME --data DIR --out DIR`."""

import argparse
import sys
from math import inf
from pathlib import Path

from .data import DataError
from .demo import demo, summary
from .hours import plan_text
from .plans import STUDIES, runs_of
from .plans.scales import SCALES
from .pool import carry_out_on
from .runner import carry_out
from .store import Store

HERE = Path(__file__).parent


def arguments(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m studies",
        description="Train the networks of a study and keep their predictions. Finished runs are never repeated.",
        epilog="example: python -m studies complexity --scale cpu --data ~/data",
    )
    parser.add_argument(
        "names",
        nargs="+",
        metavar="NAME",
        help=f"all, demo, story, pictures, scans, published, full, fetch [FOLDER], {', '.join(STUDIES)}",
    )
    parser.add_argument(
        "--data",
        type=Path,
        default=Path(),
        help="folder with the data sets, or with folders of them",
    )
    parser.add_argument(
        "--out", type=Path, default=HERE, help="where predictions/ and checkpoints/ are kept"
    )
    parser.add_argument("--scale", choices=SCALES, default="smoke")
    parser.add_argument(
        "--at-most", type=float, metavar="HOURS", default=inf, help="leave out longer runs"
    )
    parser.add_argument(
        "--parts", type=int, metavar="N", help="published: end after so many parts of the dropout"
    )
    parser.add_argument(
        "--scheduler", metavar="ADDRESS", help="a Dask scheduler whose workers share the folders"
    )
    parser.add_argument(
        "--tables",
        action="store_true",
        help="print the tables from the prediction files, train nothing",
    )
    parser.add_argument(
        "--figures", type=Path, metavar="DIR", help="write the figures as SVG, train nothing"
    )
    parser.add_argument(
        "--docs",
        type=Path,
        metavar="DIR",
        help="write a page per study with its figures, train nothing",
    )
    parser.add_argument(
        "--keep",
        action="store_true",
        help="with --docs: keep what the pages need, for checkouts without the predictions",
    )
    parser.add_argument(
        "--plan", action="store_true", help="print the plan with predicted hours, and stop"
    )
    return parser.parse_args(argv)


def main(argv: list[str]) -> int:
    args = arguments(argv)
    try:
        return SINGLE.get(args.names[0], study)(args)
    except (DataError, ValueError) as error:
        print(f"studies: {error}", file=sys.stderr)
        return 2


def demonstrate(args: argparse.Namespace) -> int:
    print(summary(demo(args.data, args.out)))
    return 0


def narrate(args: argparse.Namespace) -> int:
    """Imported here, because it needs howsure and matplotlib."""
    from .pages.story import write_story
    from .story import tell

    store = Store(args.out)
    tell(args.data, store)
    print(write_story(store, args.docs or args.out))
    return 0


def show_pictures(args: argparse.Namespace) -> int:
    from .pictures import keep_pictures

    print(keep_pictures(args.data, Store(args.out)))
    return 0


def segment(args: argparse.Namespace) -> int:
    from .scans import scans

    print(scans(args.data, args.out))
    return 0


def ask_published_networks(args: argparse.Namespace) -> int:
    from .published import ask_published

    print(ask_published(args.data, args.out / "kept", args.parts))
    return 0


def fetch(args: argparse.Namespace) -> int:
    from .fetch import fetch_predictions

    folder = Path(args.names[1]) if len(args.names) > 1 else None
    print(fetch_predictions(args.out, folder))
    return 0


def train_full(args: argparse.Namespace) -> int:
    from .plans.full import wanted

    runs = wanted()
    store = Store(args.out)
    print(plan_text(runs, {run.settings.name for run in runs if store.finished(run)}), flush=True)
    if not args.plan:
        carry_out(runs, args.data, store)
    return 0


def study(args: argparse.Namespace) -> int:
    names = list(STUDIES) if args.names == ["all"] else args.names
    unknown = [name for name in names if name not in STUDIES]
    if unknown:
        raise ValueError(f"study {unknown[0]!r} is unknown; there are {', '.join(STUDIES)}.")
    runs, store = runs_of(names, args.scale, at_most=args.at_most), Store(args.out)
    if args.tables or args.figures or args.docs:
        return show_results(names, store, args)
    print(plan_text(runs, {run.settings.name for run in runs if store.finished(run)}), flush=True)
    if args.scheduler and not args.plan:
        carry_out_on(args.scheduler, runs, args.data.absolute(), Store(args.out.absolute()))
    elif not args.plan:
        carry_out(runs, args.data, store)
    return 0


def show_results(names: list[str], store: Store, args: argparse.Namespace) -> int:
    """Imported here, because training needs neither howsure nor matplotlib."""
    if args.tables:
        from .pages import report

        print("\n".join(report(name, store, args.scale) for name in names))
    if args.figures:
        from .figures import write_figures

        for name in names:
            print(*write_figures(name, store, args.scale, args.figures), sep="\n", file=sys.stderr)
    if args.docs:
        from .pages import write_pages

        write_pages(names, store, args.scale, args.docs, keep=args.keep)
    return 0


SINGLE = {"demo": demonstrate, "story": narrate, "pictures": show_pictures, "scans": segment,
          "published": ask_published_networks, "fetch": fetch, "full": train_full}  # fmt: skip


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
