"""The version, written here and nowhere else; reports name it without importing everything."""

__version__ = "0.3.0.dev0"
