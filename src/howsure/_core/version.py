"""The version, in a module of its own so that reports can name it without importing everything."""

__version__ = "0.1.0"
