"""A policy and a stream of predictions come in; decisions go out, one line each, and survive a crash."""

from howsure.serving.resume import decide_file
from howsure.serving.stream import Served, Serving, decide_stream

__all__ = ["Served", "Serving", "decide_file", "decide_stream"]
