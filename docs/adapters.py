"""Modules for libraries that need not be there when the site is built; Sphinx lets something stand
for those.
"""

from importlib import import_module
from importlib.util import find_spec

ADAPTERS = [
    "integrations.lightning",
    "integrations.mlflow",
    "integrations.tensorboard",
    "integrations.torchmetrics",
    "integrations.transformers",
    "notebook",
    "onnx",
    "sklearn",
    "torch",
]
LACKING = [
    name
    for name in ("anywidget", "lightning", "onnx", "torch", "torchmetrics")
    if find_spec(name) is None
]
if find_spec(
    "sklearn"
):  # it and SciPy are loaded before anything stands for torch, which they would take for real
    import_module("howsure.sklearn")
