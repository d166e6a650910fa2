"""A real Lightning fit: the callback logs what howsure finds in the same predictions."""

import json
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest

import howsure as hs
from howsure import InputError

pytest.importorskip("sklearn")
torch = pytest.importorskip("torch")
lightning = pytest.importorskip("lightning.pytorch")
made = pytest.importorskip("howsure.integrations.torchmetrics")
ConfidenceMonitor = pytest.importorskip("howsure.integrations.lightning").ConfidenceMonitor
DataLoader = pytest.importorskip("torch.utils.data").DataLoader
MetricCollection = pytest.importorskip("torchmetrics").MetricCollection
digits = pytest.importorskip("integrations.digits").digits


class Linear(lightning.LightningModule):
    """Logistic regression; the validation step returns what `answer` makes of logits and labels."""

    def __init__(self, answer: Any) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(64, 10)
        self.answer = answer

    def training_step(self, batch: Any) -> Any:
        return torch.nn.functional.cross_entropy(self.layer(batch[0]), batch[1])

    def validation_step(self, batch: Any, batch_idx: int, dataloader_idx: int = 0) -> Any:
        return self.answer(self.layer(batch[0]), batch[1])

    def configure_optimizers(self) -> Any:
        return torch.optim.Adam(self.parameters(), lr=0.01)


def fitted(monitor: Any, answer: Any, folder: Path, *, loaders: int = 1) -> tuple[Any, Any]:
    """Two epochs on digits with the callback; the trainer and the model."""
    lightning.seed_everything(0, verbose=False)
    train, validation = digits()
    trainer = lightning.Trainer(
        max_epochs=2,
        accelerator="cpu",
        callbacks=[monitor],
        default_root_dir=folder,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    model = Linear(answer)
    tested = [DataLoader(validation, batch_size=100)] * loaders
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Lightning's advice on workers
        trainer.fit(model, DataLoader(train, batch_size=64), tested)
    return trainer, model


def as_dict(logits: Any, labels: Any) -> Any:
    return {"logits": logits, "labels": labels}


def validated(model: Any) -> hs.Predictions:
    x, y = digits()[1].tensors
    with torch.no_grad():
        return hs.Predictions.from_logits(model.layer(x), y)


def test_a_fit_logs_the_numbers_of_howsure(tmp_path: Path) -> None:
    trainer, model = fitted(ConfidenceMonitor(outputs="logits"), as_dict, tmp_path)
    preds = validated(model)
    t = hs.tally(preds.confidence, correct=preds.correct)
    expected = {"val_ece": hs.ece(t), "val_aurc": hs.aurc(t), "val_nll": hs.nll(preds)}
    logged = {name: trainer.callback_metrics[name].item() for name in expected}
    assert logged == pytest.approx(expected, abs=1e-4)


def test_each_loader_has_its_name_and_any_step_can_be_read(tmp_path: Path) -> None:
    several = MetricCollection({"auroc": made.AUROC(outputs="probs")})
    monitor = ConfidenceMonitor(
        outputs="probs",
        metrics=several,
        prefix="held_out/",
        read=lambda step, batch: (step.softmax(dim=1), batch[1]),
    )
    trainer, model = fitted(monitor, lambda logits, labels: logits, tmp_path, loaders=2)
    preds = validated(model)
    expected = hs.auroc(hs.tally(preds.confidence, correct=preds.correct))
    assert monitor.names == ["held_out/auroc"]
    for i in range(2):
        found = trainer.callback_metrics[f"held_out/auroc/dataloader_idx_{i}"].item()
        assert found == pytest.approx(expected, abs=1e-4)


def test_two_processes_log_the_bits_of_one(tmp_path: Path) -> None:
    tests = Path(__file__).parents[1]
    command = [sys.executable, "-m", "integrations.ddp_worker", str(tmp_path)]
    run = subprocess.run(
        command, cwd=tests, capture_output=True, text=True, check=True, timeout=900
    )
    two, one = json.loads(run.stdout.splitlines()[-1])
    assert two == one
    assert sorted(one) == ["val_aurc", "val_ece", "val_nll"]


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (
            lambda z, y: None,
            "validation_step returned NoneType; a dict with 'logits' and 'labels' is needed",
        ),
        (
            lambda z, y: {"loss": z.sum()},
            "validation_step returned a dict with 'loss'; a dict with 'logits'",
        ),
        (lambda z, y: {"logits": (z, z), "labels": y}, "preds is a tuple of 2"),
        (
            lambda z, y: {"logits": z.softmax(dim=1), "labels": y},
            "these are probabilities, not logits",
        ),
    ],
)
def test_refusals(answer: Any, message: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=message):
        fitted(ConfidenceMonitor(outputs="logits"), answer, tmp_path)


def test_what_the_numbers_are_must_be_said() -> None:
    with pytest.raises(InputError, match="outputs is None; say 'logits' or 'probs'"):
        ConfidenceMonitor(outputs=None)
