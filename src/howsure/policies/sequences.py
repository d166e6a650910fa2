"""Moved."""

from howsure.policies.guarantee import AcceptedCounts as Kept
from howsure.policies.guarantee import compute_upper_bound as upper_bound
from howsure.policies.guarantee import find_step_rows as step_rows
