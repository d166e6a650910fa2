"""What tests of reports share: a command run in this process."""

from collections.abc import Callable
from pathlib import Path

import pytest

from howsure.cli.main import main


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """The command in this process; it must end with `ok`, and what it printed comes back."""

    def call(*words: str | Path, ok: int = 0) -> str:
        with pytest.raises(SystemExit) as stop:
            main([str(w) for w in words])
        out, err = capsys.readouterr()
        assert int(stop.value.code or 0) == ok, err
        return out + err

    return call
