"""Speed and memory of howsure beside its peers: `python -m benchmarks` prints the table."""
