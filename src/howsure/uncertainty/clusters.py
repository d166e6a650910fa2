"""Moved."""

from howsure.uncertainty.means import Units as Units
from howsure.uncertainty.means import describe_few_groups as few_groups
from howsure.uncertainty.means import estimate_freedom as freedom
from howsure.uncertainty.means import sum_by_unit as unit_sums
