"""Moved."""

from howsure.predictions.frames import OutputKind as Outputs
from howsure.predictions.frames import build_batch as predictions
from howsure.predictions.frames import check_output_kind as checked_outputs
