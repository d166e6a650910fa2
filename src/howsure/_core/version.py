"""The version, written here and nowhere else; reports name it without importing everything."""

__version__ = "0.2.0.dev0"
