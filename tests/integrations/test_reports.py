"""A report in TensorBoard's event files and in an MLflow store, read back by the libraries
themselves.
"""

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import howsure as hs
from howsure import InputError
from howsure.integrations import mlflow as to_mlflow
from howsure.integrations import tensorboard as to_tensorboard
from howsure.report.report import scalars


@pytest.fixture(scope="module")
def report() -> hs.Report:
    rng = np.random.default_rng(0)
    z = 2 * rng.normal(size=(400, 3))
    return hs.evaluate(hs.Predictions.from_logits(z, (z + rng.normal(size=z.shape)).argmax(axis=1)))


def test_scalars_are_the_report(report: hs.Report) -> None:
    found = scalars(report)
    entry = report.data["metrics"]["ece"]
    assert (found["ece"], found["ece_low"], found["ece_high"]) == (
        entry["value"],
        entry["low"],
        entry["high"],
    )
    undefined = [name for name, entry in report.data["metrics"].items() if entry["value"] is None]
    assert undefined
    assert not set(undefined) & set(found)


def test_tensorboard_reads_it_back(report: hs.Report, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    pytest.importorskip("tensorboard")
    pytest.importorskip("matplotlib")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    to_tensorboard.log_report(report, tmp_path, step=3)
    events = EventAccumulator(str(tmp_path)).Reload()
    assert set(events.Tags()["scalars"]) == {f"howsure/{name}" for name in scalars(report)}
    (point,) = events.Scalars("howsure/aurc")
    assert point.step == 3
    assert point.value == pytest.approx(report["aurc"], rel=1e-6)
    (image,) = events.Images("howsure/curves")
    assert image.width > 1000
    assert _shades(image.encoded_image_string) > 10
    (text,) = events.Tensors("howsure/report/text_summary")
    assert text.tensor_proto.string_val[0].decode() == report.to_markdown()


def _shades(png: bytes) -> int:
    """How many colours a picture has: an empty one has one."""
    from PIL import Image

    return len(np.unique(np.asarray(Image.open(io.BytesIO(png))).reshape(-1, 3), axis=0))


def test_tensorboard_takes_a_writer_and_steps(report: hs.Report, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    pytest.importorskip("tensorboard")
    pytest.importorskip("matplotlib")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    from torch.utils.tensorboard import SummaryWriter

    with SummaryWriter(tmp_path) as writer:
        for step in (1, 2):
            to_tensorboard.log_report(report, writer, step=step, tag="val")
    events = EventAccumulator(str(tmp_path)).Reload()
    assert [point.step for point in events.Scalars("val/ece")] == [1, 2]


@pytest.mark.parametrize("store", ["file", "sqlite"])
def test_mlflow_reads_it_back(
    report: hs.Report, store: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mlflow = pytest.importorskip("mlflow")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    mlflow.set_tracking_uri(
        (tmp_path / "runs").as_uri() if store == "file" else f"sqlite:///{tmp_path}/runs.db"
    )
    experiment = mlflow.create_experiment(
        "digits", artifact_location=(tmp_path / "artifacts").as_uri()
    )
    with mlflow.start_run(experiment_id=experiment) as run:
        to_mlflow.log_report(report, step=2, prefix="val_")
    found = mlflow.tracking.MlflowClient().get_run(run.info.run_id).data.metrics
    assert found == {f"val_{name}": value for name, value in scalars(report).items()}
    history = mlflow.tracking.MlflowClient().get_metric_history(run.info.run_id, "val_ece")
    assert [point.step for point in history] == [2]
    folder = Path(
        mlflow.artifacts.download_artifacts(run_id=run.info.run_id, artifact_path="howsure")
    )
    assert hs.Report.from_json((folder / "report.json").read_text()).data == report.data
    assert (folder / "report.html").read_text() == report.to_html()


@pytest.mark.parametrize("given", [None, 3, object()])
def test_a_report_goes_to_a_writer_or_a_folder(report: hs.Report, given: Any) -> None:
    with pytest.raises(InputError, match="a SummaryWriter or the folder of a run is needed"):
        to_tensorboard.log_report(report, given)


def test_only_reports_are_logged() -> None:
    with pytest.raises(InputError, match="this is a dict; a Report is needed"):
        scalars({})  # pyright: ignore
