"""For TensorBoard: a report as scalars, figures and text. Needs the extra `tensorboard`."""

from __future__ import annotations

from os import PathLike
from typing import TYPE_CHECKING, Protocol

from howsure._core.checks import InputError, need
from howsure.report.report import Report, scalars

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["log_report"]


class Writer(Protocol):
    """The part of a SummaryWriter that is used here."""

    def add_scalar(self, tag: str, scalar_value: float, global_step: int) -> object: ...

    def add_figure(self, tag: str, figure: Figure, global_step: int) -> object: ...

    def add_text(self, tag: str, text_string: str, global_step: int) -> object: ...


def log_report(
    report: Report, to: Writer | str | PathLike[str], *, step: int = 0, tag: str = "howsure"
) -> None:
    """Write a report to TensorBoard at a step; `to` is a SummaryWriter, or the folder of a run.

    Scalars are `tag/ece` and, where there is an interval, `tag/ece_low` and `tag/ece_high`; numbers
    that are undefined are left out. The main curves become an image, the tables and findings a
    text.
    """
    if isinstance(to, (str, PathLike)):
        # All three are asked for, so that the one that is missing is the one that is named.
        need("torch", for_="tensorboard.log_report", extra="tensorboard")
        need("tensorboard", for_="tensorboard.log_report", extra="tensorboard")
        tools = need("torch.utils.tensorboard", for_="tensorboard.log_report", extra="tensorboard")
        with tools.SummaryWriter(to) as writer:
            return _write(report, writer, step, tag)
    if not callable(getattr(to, "add_scalar", None)):
        raise InputError(
            f"cannot write to a {type(to).__name__}; a SummaryWriter or the folder of a run is needed."
        )
    return _write(report, to, step, tag)


def _write(report: Report, writer: Writer, step: int, tag: str) -> None:
    for name, value in scalars(report).items():
        writer.add_scalar(f"{tag}/{name}", value, step)
    writer.add_figure(f"{tag}/curves", report.figure(), step)
    writer.add_text(f"{tag}/report", report.to_markdown(), step)
