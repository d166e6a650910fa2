"""Moved."""

from howsure.calibrators.step_functions import fit_score_steps as steps_of_scores
