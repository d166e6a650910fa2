"""A policy and a stream of predictions come in; decisions go out, one line each, and survive a
crash.
"""

from howsure.serving.promise import WatchedPromise
from howsure.serving.promise import WatchedPromise as Promise
from howsure.serving.resume import decide_file
from howsure.serving.stream import Served, Serving, decide_stream

__all__ = ["Promise", "Served", "Serving", "WatchedPromise", "decide_file", "decide_stream"]
