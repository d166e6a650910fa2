"""Summaries of data sets come in; reports, comparisons, findings and verdicts go out."""
