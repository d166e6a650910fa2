"""Published networks: dropout that is switched on late, and the authors' rule for error-free bins."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")
hs = pytest.importorskip("howsure")

from studies.claims.claim import (  # noqa: E402
    AGREES,
    FULL,
    NOT,
    OPEN,
    OURS,
    PUBLISHED,
    SMALL,
    Claim,
    Evidence,
)
from studies.networks.published_resnet import (  # noqa: E402
    LateDropout,
    PublishedResNet,
    load_published,
    normalise,
)
from studies.published import collect_dropout, spread_of_passes  # noqa: E402
from studies.tables.published_odds import pool_bins, pooled_eor  # noqa: E402

NAN = float("nan")


def test_late_dropout_drops_its_share_and_keeps_the_mean():
    """A hundred thousand ones: the share dropped has a standard deviation of 0.0007."""
    dropout = LateDropout().eval()
    dropout.rate = 0.05
    dropout.generator.manual_seed(0)
    found = dropout(torch.ones(10, 10, 10, 100))
    assert float((found == 0).float().mean()) == pytest.approx(0.05, abs=0.003)
    assert float(found.max()) == pytest.approx(1 / 0.95)
    dropout.rate = 0.0
    assert bool((dropout(torch.ones(1, 1, 2, 2)) == 1).all())


def test_weights_are_loaded_by_their_published_names():
    state = {name: v.numpy() for name, v in PublishedResNet(20).state_dict().items()}
    stored = {name: v for name, v in state.items() if not name.endswith("num_batches_tracked")}
    network = load_published(20, stored)
    images = np.random.default_rng(0).integers(0, 256, (4, 3, 32, 32)).astype(np.uint8)
    assert network(normalise(images)).shape == (4, 10)
    with pytest.raises(ValueError, match="not the weights of ResNet-32"):
        load_published(32, stored)


def test_passes_differ_more_at_a_higher_rate_and_not_without_dropout(tmp_path):
    torch.manual_seed(0)
    network = PublishedResNet(20).eval()
    images = np.random.default_rng(0).integers(0, 256, (3, 3, 32, 32)).astype(np.uint8)
    found = spread_of_passes(network, images, seed=0)
    assert (found["sum_0.05"] > found["sum_0.002"]).all()
    assert (found["frobenius_0.05"] <= found["sum_0.05"]).all()
    assert network.dropout.rate == 0
    for start in (500, 0):
        np.savez(tmp_path / f"dropout_{start}.npz", x=np.full(250, start))
    both = collect_dropout(tmp_path)
    assert both["rows"].tolist() == [*range(250), *range(500, 750)]
    assert both["x"][[0, 250]].tolist() == [0, 500]


def test_bins_are_pooled_as_the_authors_do():
    """The surest two and one past them; then those from the first without a right answer."""
    assert pool_bins(np.array([0.9, 1.0, 0.8, 0.5])) == pytest.approx([0.9, 0.9, 0.9, 0.5])
    assert pool_bins(np.array([0.9, 0.5, 0.0, 0.3])) == pytest.approx([0.9, 0.5, 0.1, 0.1])
    assert pool_bins(np.array([0.5, 1.0])) == pytest.approx([0.75, 0.75])


def test_pooled_odds_without_degenerate_bins_are_the_plain_ones():
    rng = np.random.default_rng(0)
    correct = rng.random(5_000) < 0.5
    score = correct + 3 * rng.normal(size=5_000)
    assert pooled_eor(score, correct) == pytest.approx(hs.eor(hs.tally(score, correct=correct)))


def case(word, regime, **more):
    return Evidence("x", "", NAN, NAN, word, regime=regime, **more)


def test_the_most_telling_regime_decides_against_a_majority():
    cases = [case(NOT, SMALL), case(NOT, SMALL), case(AGREES, PUBLISHED)]
    assert Claim("x", "", cases).word == AGREES
    assert Claim("x", "", cases).counts() == "1 / 0 / 0"
    assert Claim("x", "", cases).reason == "By cases of the kind small network: does not agree."
    assert Claim("x", "", cases, telling=OURS).word == NOT
    assert Claim("x", "", [cases[0], case(AGREES, PUBLISHED, counts=False)]).word == NOT
    full = [case(OPEN, FULL), *cases]
    assert Claim("x", "", full, telling=OURS).regime == SMALL
    assert Claim("x", "", [case(AGREES, FULL), *full[1:]], telling=OURS).regime == FULL
    assert Claim("x", "", [case(OPEN, FULL), case(OPEN, SMALL)], telling=OURS).regime == FULL
    assert Claim("x", "", [case(OPEN, SMALL)], telling=(PUBLISHED,)).regime == SMALL
