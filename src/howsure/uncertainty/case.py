"""Moved."""

from howsure.uncertainty.sample_case import SampleCase as Case
