"""Vector, matrix and Dirichlet scaling: optimality, order, penalties and warnings."""

import numpy as np
import pytest
from scipy.optimize import minimize

import howsure as hs
from howsure import InputError, Predictions
from howsure.calibrators import (
    Dirichlet,
    MatrixScaling,
    Temperature,
    VectorScaling,
    softmax_fit,
)


def biased(n=1500, k=4, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, k, n)
    z = rng.normal(size=(n, k)) + 1.5 * np.eye(k)[y]
    return Predictions.from_logits(
        2 * z @ (np.eye(k) + 0.3 * rng.normal(size=(k, k))) + rng.normal(size=k), y
    )


def objective(preds, w, b, l2):
    k = len(b)
    s = preds.values @ w.T + b
    s -= s.max(axis=1, keepdims=True)
    nll = (np.log(np.exp(s).sum(axis=1)) - s[np.arange(len(s)), preds.labels]).mean()
    return nll + l2 * (((w - np.eye(k)) ** 2).sum() + (b**2).sum())


@pytest.mark.parametrize("l2", [0.0, 1e-3, 1.0])
def test_matrix_is_the_least(l2):
    preds = biased()
    k = preds.k
    m = MatrixScaling.fit(preds, l2=l2)
    at = lambda v: objective(preds, v[: k * k].reshape(k, k), v[k * k :], l2)
    found = minimize(
        at, np.concatenate((m.weight.ravel(), m.intercept)), method="BFGS", options={"gtol": 1e-9}
    )
    assert objective(preds, m.weight, m.intercept, l2) <= found.fun + 1e-9
    assert m.fitted.status == "converged"


@pytest.mark.parametrize("l2", [0.0, 1e-2])
def test_vector_is_the_least(l2):
    preds = biased()
    v = VectorScaling.fit(preds, l2=l2)
    penalised = lambda w, b: objective(preds, np.diag(w), b, l2)
    k = preds.k
    start = np.concatenate((v.weight, v.intercept))
    found = minimize(
        lambda x: penalised(x[:k], x[k:]), start, method="BFGS", options={"gtol": 1e-9}
    )
    assert penalised(v.weight, v.intercept) <= found.fun + 1e-9


@pytest.mark.parametrize("kind", [MatrixScaling, Dirichlet])
def test_more_parameters_than_samples_need_a_penalty(kind):
    preds = biased(n=109, k=10)
    with pytest.raises(InputError, match="has 110 parameters and cannot be fitted on 109 samples"):
        kind.fit(preds)
    assert kind.fit(preds, l2=0.1).fitted.status == "converged"


def test_threads_of_blas_are_as_before_after_a_fit():
    threads = softmax_fit.find_blas_threads()
    if threads is None:
        pytest.skip("left out: NumPy has no OpenBLAS of its own here")
    before, inside = threads.read(), []
    threads.write(2)
    try:
        with softmax_fit.use_one_blas_thread():
            inside.append(threads.read())
        MatrixScaling.fit(biased())
        assert (inside, threads.read()) == ([1], 2)
    finally:
        threads.write(before)


def gradient_of(preds, weight, intercept, l2=0.0):
    """Of the mean loss, in double precision whatever the fit used."""
    k = len(intercept)
    s = preds.values.astype(np.float64) @ weight.T + intercept
    p = np.exp(s - s.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    p[np.arange(preds.n), preds.labels] -= 1
    by_weight = p.T @ preds.values / preds.n + 2 * l2 * (weight - np.eye(k))
    return np.concatenate(
        (by_weight, p.mean(axis=0)[:, None] + 2 * l2 * intercept[:, None]), axis=1
    )


@pytest.mark.parametrize("l2", [0.0, 1e-4])
def test_large_matrices_converge_too(l2):
    """Beyond the size where the whole second derivative is made."""
    preds = biased(3000, 25)
    m = MatrixScaling.fit(preds, l2=l2)
    assert m.fitted.status == "converged"
    assert np.abs(gradient_of(preds, m.weight, m.intercept, l2)).max() <= 1e-7


def test_single_precision_shows_the_way_to_the_same_minimum():
    """So many logits that most passes are in single precision, drawn as a softmax regression of
    themselves.
    """
    rng = np.random.default_rng(0)
    z = (2.5 * rng.standard_normal((45_000, 25))).astype(np.float32)
    preds = Predictions.from_logits(z, (z + rng.gumbel(size=z.shape)).argmax(axis=1))
    m, v = MatrixScaling.fit(preds), VectorScaling.fit(preds)
    assert (m.fitted.status, v.fitted.status) == ("converged", "converged")
    assert np.abs(gradient_of(preds, m.weight, m.intercept)).max() <= 1e-7
    by_all = gradient_of(preds, np.diag(v.weight), v.intercept)
    assert np.abs(np.diag(by_all)).max() <= 1e-7
    assert np.abs(by_all[:, -1]).max() <= 1e-7
    assert m.fitted.nll == pytest.approx(objective(preds, m.weight, m.intercept, 0.0), abs=1e-12)


def test_logits_that_go_together_converge_too():
    """Far from 0, in few directions, with rare classes: conjugate gradients take over from the
    guess.
    """
    rng = np.random.default_rng(1)
    z = (
        rng.normal(size=(6000, 4)) @ rng.normal(size=(4, 20))
        + 0.3 * rng.normal(size=(6000, 20))
        - 8
    )
    shift = 0.05 * rng.normal(size=(20, 20)) + np.eye(20)
    labels = (z @ shift.T - 0.5 * np.sqrt(np.arange(20)) + rng.gumbel(size=z.shape)).argmax(axis=1)
    assert np.bincount(labels, minlength=20).min() > 0
    preds = Predictions.from_logits(z, labels)
    m = MatrixScaling.fit(preds)
    assert m.fitted.status == "converged"
    assert np.abs(gradient_of(preds, m.weight, m.intercept)).max() <= 1e-7


@pytest.mark.filterwarnings("ignore:MatrixScaling gets all")
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(("n", "k"), [(40, 2), (60, 5), (300, 3)])
def test_more_parameters_never_fit_worse(n, k, seed):
    preds = biased(n, k, seed)
    fits = [Temperature.fit(preds), VectorScaling.fit(preds), MatrixScaling.fit(preds)]
    loss = [hs.nll(preds), *(hs.nll(x(preds)) for x in fits)]
    assert all(b <= a + 1e-12 for a, b in zip(loss, loss[1:], strict=False))


def test_off_diagonal_penalty_leads_to_the_vector():
    preds = biased()
    m = MatrixScaling.fit(preds, off_diagonal=1e7)
    assert hs.nll(m(preds)) == pytest.approx(hs.nll(VectorScaling.fit(preds)(preds)), abs=1e-5)


def test_intercept_penalty_removes_the_intercept():
    assert np.abs(MatrixScaling.fit(biased(), intercept=1e8).intercept).max() < 1e-5


def test_dirichlet_of_log_probabilities_is_matrix_scaling_of_them():
    preds = biased()
    probs = Predictions.from_probs(preds.probs, preds.labels)
    assert hs.nll(Dirichlet.fit(preds)(preds)) == pytest.approx(
        hs.nll(MatrixScaling.fit(probs)(probs)), abs=1e-9
    )


def test_kinds_stay():
    preds = biased(200)
    probs = Predictions.from_probs(preds.probs, preds.labels)
    assert VectorScaling.fit(preds)(preds).kind == "logits"
    assert VectorScaling.fit(probs)(probs).kind == "probs"


def test_samples_are_averaged_first():
    preds = biased(300)
    twice = Predictions.from_samples(np.stack((preds.values, preds.values)), preds.labels)
    mean = Predictions.from_probs(preds.probs, preds.labels)
    assert VectorScaling.fit(twice)(twice).probs == pytest.approx(
        VectorScaling.fit(mean)(mean).probs, abs=1e-6
    )


def test_same_input_same_bits():
    a, b = MatrixScaling.fit(biased()), MatrixScaling.fit(biased())
    assert (a.weight == b.weight).all()


def test_separable_data_are_told():
    preds = Predictions.from_logits([[1.0, 0.0], [2.0, 0.0], [0.0, 1.0], [0.0, 2.0]], [0, 0, 1, 1])
    with pytest.warns(UserWarning, match="VectorScaling gets all 4 samples of the fit right"):
        v = VectorScaling.fit(preds)
    assert v.fitted.status == "separable"
    assert np.isfinite(v.weight).all()


def test_a_missing_class_is_told():
    preds = Predictions.from_logits(biased(100, 3).values, [0, 1] * 50)
    with pytest.warns(UserWarning, match=r"1 of 3 classes have no samples \(first: class 2\)"):
        VectorScaling.fit(preds)


def test_bad_penalty():
    with pytest.raises(InputError, match="l2 is -1; a finite number that is not negative"):
        VectorScaling.fit(biased(50), l2=-1)


def test_parts_that_do_not_fit_together():
    with pytest.raises(InputError, match="do not fit together"):
        MatrixScaling(np.eye(3), np.zeros(2))


@pytest.mark.parametrize("cls", [VectorScaling, MatrixScaling])
def test_the_other_kind_of_numbers_is_refused(cls, tmp_path):
    """The map differs: a weight for each class sees the number by which logits and logs of
    probabilities differ.
    """
    logits = biased(300)
    probs = Predictions.from_probs(logits.probs, logits.labels)
    for fit, other, words in (
        (logits, probs, "on logits, these are prob"),
        (probs, logits, "on prob.*, these are log"),
    ):
        hs.save(cls.fit(fit), tmp_path / "c.json")
        again = hs.load(tmp_path / "c.json")
        assert again(fit).n == 300
        with pytest.raises(InputError, match=words):
            again(other)
        with pytest.raises(InputError, match=words):
            hs.policies.Policy("max_prob", 0.5, again).decide(other)
    by_hand = cls(again.weight, again.intercept)  # nobody knows what for
    assert by_hand(logits).n == by_hand(probs).n == 300


def test_temperature_is_the_same_for_logits_and_probabilities():
    logits = biased(300)
    probs = Predictions.from_probs(logits.probs, logits.labels)
    found = Temperature.fit(logits)
    np.testing.assert_allclose(found(logits).probs, found(probs).probs, rtol=1e-12)


def test_what_changes_no_probability_stays_small():
    """Adding the same to the rows of all classes changes nothing; let grow, it costs the digits of
    single precision.
    """
    rng = np.random.default_rng(0)
    z = (2.5 * rng.standard_normal((110_000, 10))).astype(np.float32)
    preds = Predictions.from_logits(z, (z + rng.gumbel(size=z.shape)).argmax(axis=1))
    d = Dirichlet.fit(preds)
    assert d.fitted.status == "converged"
    assert np.abs(d.weight.mean(axis=0)).max() < 1
    assert abs(d.intercept.mean()) < 1
