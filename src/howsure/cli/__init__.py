"""The command line: parse, call, render. Commands are imported when they are named."""

import os
import sys

# NumPy reads these once, when it is imported. The sums of a report are short: threads that wait for
# each other take more time than they save (`evaluate` of 10⁶ × 10 rows: 4.2 CPU s instead of 2.5).
for library in ("OMP", "OPENBLAS", "MKL"):
    os.environ.setdefault(f"{library}_NUM_THREADS", "1")

try:
    from howsure.cli.main import main
except KeyboardInterrupt:  # Ctrl-C before the command has begun
    if sys.stderr is not None:  # pyright: ignore[reportUnnecessaryComparison] - closed
        sys.stderr.write("howsure: stopped\n")
    sys.exit(130)

__all__ = ["main"]
