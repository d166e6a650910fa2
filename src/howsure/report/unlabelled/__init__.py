"""Labelled data of a model and new data without labels come in; estimates, drift and monitors go
out.
"""
