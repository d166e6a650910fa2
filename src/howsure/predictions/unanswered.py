"""Moved."""

from howsure.predictions.input_shapes import Unanswered as Unanswered
