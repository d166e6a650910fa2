"""One thread for linear algebra unless the environment says otherwise; imported before NumPy, which
reads it once.

The sums of a report are short: threads that wait for each other take more time than they save
(`evaluate` of 10⁶ × 10 took 4.2 CPU s instead of 2.5 on two busy cores).
"""

from __future__ import annotations

import os

for library in ("OMP", "OPENBLAS", "MKL"):
    os.environ.setdefault(f"{library}_NUM_THREADS", "1")
