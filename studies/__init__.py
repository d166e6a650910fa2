"""The papers' experiments: networks are trained here, numbers are recomputed from their prediction
files.
"""
