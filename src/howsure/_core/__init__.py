"""What every room stands on: checks, JSON, atomic writes, optional imports."""
