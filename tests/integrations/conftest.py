"""Nothing here may reach the network, nor leave files outside of the test's own folder."""

import os

os.environ |= {
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "DO_NOT_TRACK": "1",
    "MLFLOW_DISABLE_TELEMETRY": "true",
}
os.environ.setdefault("MPLBACKEND", "agg")
