"""What every room stands on: checks, JSON, atomic writes, exact sums, optional imports."""
