"""compute_metrics inside a real Hugging Face Trainer, on a tiny network with random weights and
real digits.
"""

from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import howsure as hs
from howsure import InputError
from howsure.integrations.transformers import compute_metrics


def given(logits: Any, labels: Any) -> Any:
    return SimpleNamespace(predictions=logits, label_ids=labels)


def test_tokens_and_ignored_labels() -> None:
    rng = np.random.default_rng(0)
    z, y = rng.normal(size=(20, 7, 3)).astype(np.float32), rng.integers(0, 3, size=(20, 7))
    y[:, 5:] = -100
    found = compute_metrics(hs.accuracy, hs.nll, partial(hs.ece, bins=hs.equal_size(5)))(
        given(z, y)
    )
    preds = hs.Predictions.from_logits(z[:, :5].reshape(-1, 3), y[:, :5].reshape(-1))
    t = hs.tally(preds.confidence, correct=preds.correct)
    assert found == {
        "accuracy": hs.accuracy(preds),
        "nll": hs.nll(preds),
        "ece": hs.ece(t, hs.equal_size(5)),
    }


Z, Y = np.array([[1.0, -1.0], [0.0, 2.0]]), np.array([0, 1])
BAD = [
    (
        (Z, Z),
        Y,
        "the model returned 2 arrays; only the logits are needed. .* preprocess_logits_for_metrics",
    ),
    (Z, None, "the evaluation data have no labels"),
    (Z, np.array([-100, -100]), "every label is -100"),
    (np.abs(Z) / np.abs(Z).sum(axis=1, keepdims=True), Y, "these are probabilities, not logits"),
    (Z, np.eye(2), r"target has shape \(2, 2\)"),
]


@pytest.mark.parametrize(("logits", "labels", "message"), BAD)
def test_refusals(logits: Any, labels: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        compute_metrics()(given(logits, labels))


def test_a_real_trainer(tmp_path: Path) -> None:
    pytest.importorskip("accelerate")
    transformers = pytest.importorskip("transformers")
    torch = pytest.importorskip("torch")
    from integrations.digits import digits

    train, validation = (
        [
            {"pixel_values": x.reshape(1, 8, 8), "labels": y}
            for x, y in zip(*part.tensors, strict=True)
        ]
        for part in digits()
    )
    torch.manual_seed(0)
    shape = {
        "hidden_size": 16,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "intermediate_size": 32,
    }
    config = transformers.ViTConfig(
        image_size=8, patch_size=4, num_channels=1, num_labels=10, **shape
    )
    arguments = transformers.TrainingArguments(
        str(tmp_path),
        max_steps=30,
        per_device_eval_batch_size=100,
        use_cpu=True,
        report_to="none",
        save_strategy="no",
    )
    trainer = transformers.Trainer(
        transformers.ViTForImageClassification(config),
        arguments,
        train_dataset=train,
        eval_dataset=validation,
        compute_metrics=compute_metrics(),
    )
    trainer.train()
    found = trainer.evaluate()
    answers = trainer.predict(validation)
    preds = hs.Predictions.from_logits(answers.predictions, answers.label_ids)
    t = hs.tally(preds.confidence, correct=preds.correct)
    expected = {
        "accuracy": hs.accuracy(preds),
        "nll": hs.nll(preds),
        "ece": hs.ece(t),
        "aurc": hs.aurc(t),
    }
    assert {name: found[f"eval_{name}"] for name in expected} == pytest.approx(expected, abs=1e-6)
    assert found["eval_nll"] == pytest.approx(found["eval_loss"], rel=1e-4)
