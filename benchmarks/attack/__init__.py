"""Attacks on howsure, area by area; `python -m benchmarks.attack` runs them all and prints what
failed.
"""
