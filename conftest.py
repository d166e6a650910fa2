"""Modules that need an optional package are not collected where it is missing; any other failed import is an error."""

from importlib.util import find_spec

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
