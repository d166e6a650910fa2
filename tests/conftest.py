"""What all tests share: the data outside the repository, and how hypothesis searches."""

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

from howsure.report.calibration_report import CalibrationReport
from howsure.report.comparing import Comparison
from howsure.report.report import Report
from schemas import validate

REPOSITORY = Path(__file__).resolve().parents[1]
SHARED = Path(os.environ.get("HOWSURE_SHARED", REPOSITORY.parent / "shared"))

# The default search is the same in every run. `HYPOTHESIS_PROFILE=thorough pytest tests/laws` looks
# further.
settings.register_profile(
    "howsure",
    derandomize=True,
    database=None,
    deadline=None,
    max_examples=15,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile(
    "thorough", settings.get_profile("howsure"), derandomize=False, max_examples=500
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "howsure"))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden",
        action="store_true",
        help="Write what the renderers make into tests/golden.",
    )
    parser.addoption(
        "--shuffle",
        type=int,
        metavar="SEED",
        help="Run the tests in a random order, which the seed repeats.",
    )


def pytest_report_header(config: pytest.Config) -> str | None:
    seed = config.getoption("--shuffle")
    return None if seed is None else f"random order: --shuffle {seed}"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Files in a random order, and the tests of each: fixtures of a file are made once."""
    seed = config.getoption("--shuffle")
    if seed is None:
        return
    random = Random(seed)
    names = sorted({item.nodeid.partition("::")[0] for item in items})
    random.shuffle(names)
    random.shuffle(items)
    place = {name: i for i, name in enumerate(names)}
    items.sort(key=lambda item: place[item.nodeid.partition("::")[0]])


@pytest.fixture(scope="session", autouse=True)
def whatever_is_made_fits_its_schema() -> Iterator[None]:
    """Every report, comparison and calibration report that any test makes or reads is held against
    its types.
    """
    with pytest.MonkeyPatch.context() as patch:
        for kind, name in ((Report, "report"), (Comparison, "comparison")):
            patch.setattr(kind, "__init__", _checked(kind.__init__, lambda made: made.data, name))
        to_dict = CalibrationReport.to_dict
        patch.setattr(
            CalibrationReport,
            "to_dict",
            _checked(to_dict, lambda made: to_dict(made), "calibration"),
        )
        yield


def _checked(
    method: Callable[..., Any], data: Callable[[Any], object], name: str
) -> Callable[..., Any]:
    def checked(self: Any, *args: Any, **options: Any) -> Any:
        made = method(self, *args, **options)
        validate(data(self), name)
        return made

    return checked


def shared_or_skip(path: str = "") -> Path:
    """A path in the shared folder; the test is skipped where it does not exist."""
    found = SHARED / path
    if not found.exists():
        pytest.skip(
            f"left out: {found} is not there (set HOWSURE_SHARED to the folder that holds data/)"
        )
    return found


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder with real predictions, papers and conformance cases."""
    return shared_or_skip()


@pytest.fixture(scope="session")
def index() -> dict[str, Any]:
    """What is known about each set of real predictions, by name."""
    return json.loads(shared_or_skip("data/index.json").read_text())["cases"]


@pytest.fixture(scope="session")
def arrays() -> Callable[[str], dict[str, Any]]:
    """Reads all arrays of a set of real predictions: `arrays("eurosat_rgb")["test_logits"]`."""

    def read(name: str) -> dict[str, Any]:
        with np.load(shared_or_skip(f"data/{name}.npz"), allow_pickle=False) as file:
            return {key: file[key] for key in file.files}

    return read
