"""`studies` is a folder of the repository, not part of the installed package. All of it is run
once, at scale smoke.
"""

import os
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))


@pytest.fixture(scope="session")
def smoke(tmp_path_factory) -> Path:
    """The output folder of every study at scale smoke; tests copy what they change. Test processes
    share it: each trains what no other has claimed."""
    for name in ("torch", "sklearn", "PIL"):
        pytest.importorskip(name)
    from studies.__main__ import main

    base = tmp_path_factory.getbasetemp()
    out = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "smoke"
    assert main(["all", "--scale", "smoke", "--out", str(out)]) == 0
    return out


@pytest.fixture
def alone(tmp_path, monkeypatch):
    """Without the sets that others published."""
    monkeypatch.setenv("HOWSURE_SHARED", str(tmp_path / "nothing"))
