"""A policy and a stream of predictions come in; decisions go out, one line each, and survive a
crash.

Names are resolved when they are first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from howsure.serving.feedback import GuaranteeMonitor
    from howsure.serving.live_monitors import LiveMonitors
    from howsure.serving.stream import Served, Serving, decide_file, decide_stream

__all__ = [
    "GuaranteeMonitor",
    "LiveMonitors",
    "Served",
    "Serving",
    "decide_file",
    "decide_stream",
]
CHAPTERS = {"GuaranteeMonitor": "feedback", "LiveMonitors": "live_monitors"}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{CHAPTERS.get(name, 'stream')}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
