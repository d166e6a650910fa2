"""What every room stands on: checks, JSON, atomic writes, exact sums, kernels, optional imports."""
