"""Moved."""

from howsure.tallies.buckets import from_buckets as on_grid
from howsure.tallies.row_tally import RowTally as RowTally
from howsure.tallies.row_tally import as_rows as as_rows
from howsure.tallies.row_tally import bucket_rows as bucketed
from howsure.tallies.row_tally import find_edge_cuts as edge_cuts
from howsure.tallies.row_tally import find_score_ends as score_ends
from howsure.tallies.row_tally import from_rows as from_rows
from howsure.tallies.row_tally import of_moments as of_moments
from howsure.tallies.tally import WEIGHT_SUM_ROUNDING as ROUNDING
