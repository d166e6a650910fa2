"""For MLflow: a report as metrics and artifacts of a run. Needs the extra `mlflow`."""

from __future__ import annotations

from howsure._core.checks import need
from howsure.report.report import Report, scalars

__all__ = ["log_report"]


def log_report(
    report: Report, *, step: int | None = None, prefix: str = "", folder: str = "howsure"
) -> None:
    """Log a report to the active MLflow run.

    Metrics are `ece` and, where there is an interval, `ece_low` and `ece_high`, each after
    `prefix`; numbers that are undefined are left out. The page and the JSON become `report.html`
    and `report.json` in `folder`, and `howsure.Report.from_json` reads the latter back. Without an
    active run MLflow starts one.
    """
    mlflow = need("mlflow", for_="mlflow.log_report", extra="mlflow")
    mlflow.log_metrics({prefix + name: value for name, value in scalars(report).items()}, step=step)
    mlflow.log_text(report.to_html(), f"{folder}/report.html")
    mlflow.log_text(report.to_json(), f"{folder}/report.json")
