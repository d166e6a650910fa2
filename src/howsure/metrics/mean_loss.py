"""Moved."""

from howsure.metrics.proper_scores import OtherLoss as Other
from howsure.metrics.proper_scores import mean_loss as mean_loss
from howsure.metrics.proper_scores import other_brier as other_brier
from howsure.metrics.proper_scores import other_nll as other_nll
