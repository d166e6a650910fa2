"""Moved."""

from howsure.metrics.class_calibration import ClassBinSums as Cells
from howsure.metrics.class_calibration import find_bins as _bins
from howsure.metrics.class_calibration import sum_classes as class_cells
