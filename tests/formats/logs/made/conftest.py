"""The scripts here need the tools whose logs they make: `make fixtures` runs them."""

collect_ignore_glob = ["make_*.py"]
