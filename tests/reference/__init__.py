"""Slow, obvious versions of the definitions: plain loops over single samples, to compare the fast
code with.
"""
