"""Moved."""

from howsure.predictions.input_shapes import InputLayout as Layout
from howsure.predictions.input_shapes import concat_layouts as together
from howsure.predictions.input_shapes import lay_out_units as regular
from howsure.predictions.input_shapes import strip_label_names as case_ids
