"""Real data and a network trained on it; tests are left out where torch or scikit-learn is missing."""

import pytest


@pytest.fixture(scope="session")
def digits():
    """How the network is built and trained."""
    torch = pytest.importorskip("torch")
    pytest.importorskip("sklearn")
    torch.set_num_threads(1)  # tests run side by side
    from networks import digits

    return digits


@pytest.fixture(scope="session")
def data(digits):
    """Training, validation and test set."""
    return digits.sets()


@pytest.fixture(scope="session")
def trained(digits, data):
    """Do not change it: `copy.deepcopy` first."""
    return digits.fit(digits.build(), data["train"]).eval()


@pytest.fixture
def loader(data):
    """The test set in batches of 128."""
    from torch.utils.data import DataLoader

    return DataLoader(data["test"], batch_size=128)
