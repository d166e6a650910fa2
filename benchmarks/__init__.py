"""Speed and memory of howsure beside its peers: `python -m benchmarks` prints the table.

One thread for everything that is measured: the variables must be set before NumPy is imported.
"""

import os

for _library in ("OMP", "OPENBLAS", "MKL", "NUMEXPR"):
    os.environ.setdefault(f"{_library}_NUM_THREADS", "1")
