"""Modules that need an optional package are not collected where it is missing; any other failed import is an error.

One thread for linear algebra, as the commands have it: tests already keep every core busy, and threads that wait for
each other take three times the CPU time. NumPy reads this when it is imported.
"""

import os
from importlib.util import find_spec

for library in ("OMP", "OPENBLAS", "MKL"):
    os.environ.setdefault(f"{library}_NUM_THREADS", "1")

NEEDS = {
    "src/howsure/integrations/lightning.py": "lightning",
    "src/howsure/integrations/torchmetrics.py": "torchmetrics",
    "src/howsure/serving/web.py": "starlette",
    "src/howsure/sklearn.py": "sklearn",
    "src/howsure/torch": "torch",
    "tests/integrations/ddp_worker.py": "lightning",
    "tests/integrations/digits.py": "torch",
    "tests/integrations/gloo_worker.py": "torchmetrics",
    "tests/networks/digits.py": "torch",
}
collect_ignore = [path for path, package in NEEDS.items() if find_spec(package) is None]
