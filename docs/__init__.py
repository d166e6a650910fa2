"""The site: `python -m docs.build`."""
