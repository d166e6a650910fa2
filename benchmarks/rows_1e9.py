"""A billion rows made by the query itself, in DuckDB on one thread, through the command:
`python -m benchmarks.rows_1e9` prints CPU seconds and peak memory of the whole process, which must be at most 120 s
and 1 GB. Needs duckdb.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROWS = 10**9
MOST_SECONDS, MOST_BYTES = 120, 10**9
# A confidence with five decimals, right as often as its square root says, by two hashes of the row.
TABLE = f"""\
CREATE VIEW logs AS
SELECT 1 - round((hash(i) % 1000000) / 1000000.0 * (hash(i + {ROWS}) % 1000000) / 1000000.0, 5) AS p,
  (hash(i + {2 * ROWS}) % 1000000) / 1000000.0 < sqrt(p) AS ok
FROM range({ROWS}) AS rows(i);
"""
RUN = """\
import resource, sys
from howsure.cli.main import main
try:
    main(sys.argv[1:])
finally:
    use = resource.getrusage(resource.RUSAGE_SELF)
    print(use.ru_utime + use.ru_stime, use.ru_maxrss * 1024, file=sys.stderr)
"""


def main() -> int:
    import duckdb

    with tempfile.TemporaryDirectory() as folder:
        base = Path(folder) / "logs.duckdb"
        with duckdb.connect(str(base)) as connection:
            connection.execute(TABLE)
        howsure = [sys.executable, "-m", "howsure"]
        names = ["--table", "logs", "--confidence", "p", "--correct", "ok"]
        asked = [*howsure, "sql", "--dialect", "duckdb", *names]
        query = subprocess.run(asked, capture_output=True, text=True, check=True).stdout
        words = ["evaluate", "--sql", f"SET threads = 1; {query}", "--db", str(base), "--json"]
        began = time.perf_counter()
        done = subprocess.run(
            [sys.executable, "-c", RUN, *words], capture_output=True, text=True, env=os.environ
        )
    if done.returncode:
        print(done.stderr, file=sys.stderr)
        return 1
    lines = done.stderr.splitlines()
    seconds, memory = map(float, lines[-1].split())
    report = json.loads(done.stdout)
    accuracy, aurc = report["metrics"]["accuracy"], report["metrics"]["aurc"]
    print(f"{lines[0]}; accuracy {accuracy['value']:.6f}, AURC {aurc['value']:.6f}")
    print(
        f"{seconds:.1f} s of CPU time in {time.perf_counter() - began:.0f} s, {memory / 1e6:.0f} MB at the peak"
    )
    return int(report["n"] != ROWS or seconds > MOST_SECONDS or memory > MOST_BYTES)


if __name__ == "__main__":
    sys.exit(main())
