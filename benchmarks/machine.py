"""What the numbers were measured with."""

from __future__ import annotations

import os
import platform
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

import howsure as hs


def facts() -> dict[str, str]:
    return {
        "when": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "processor": processor(),
        "cores": str(os.cpu_count()),
        "load": f"{os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else "unknown",
        "python": platform.python_version(),
        "numpy": np.__version__,
        "howsure": hs.__version__,
    }


def processor() -> str:
    """Model and widest vector extension that NumPy found, for np.sort and np.exp depend on it."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text("utf-8").splitlines() if info.exists() else []
    models = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    flags = next((line.split() for line in lines if line.startswith("flags")), [])
    vector = next((name for name in ("avx512f", "avx2", "sse4_2") if name in flags), "")
    return " ".join(filter(None, [models[0] if models else platform.machine(), vector]))
