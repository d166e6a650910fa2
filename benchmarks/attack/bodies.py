"""Bodies of requests that a service must refuse with one sentence, in little time and memory."""

from __future__ import annotations

import re
from pathlib import Path

BODIES = {
    "empty": b"",
    "garbage": b"\x00\xff\xfe",
    "latin-1": '{"id": "é", "confidence": 0.9}'.encode("latin-1"),
    "nan": b'{"confidence": NaN}',
    "infinite": b'{"confidence": 1e999}',
    "key twice": b'{"confidence": 0.9, "confidence": 0.1}',
    "long number": b'{"confidence": ' + b"9" * 5000 + b"}",
    "deep list": b"[" * 200_000,
    "deep object": b'{"probs":' * 100_000 + b"1" + b"}" * 100_000,
    "list of lists": b"[[[]]]",
    "text": b'"confidence"',
    "number": b"17",
    "null": b"null",
    "empty list": b"[]",
    "empty object": b"{}",
    "object as number": b'{"confidence": {"a": 1}}',
    "text as number": b'{"confidence": "high"}',
    "bool as id": b'{"id": true, "confidence": 0.9}',
    "list as id": b'{"id": [1], "confidence": 0.9}',
    "ragged": b'[{"probs": [0.9, 0.1]}, {"probs": [0.9, 0.05, 0.05]}]',
    "nan as text": b'{"confidence": "nan"}',
    "no numbers": b'{"probs": []}',
    "a csv": b"confidence\n0.9\n",
    "two objects": b'{"confidence": 0.9}{"confidence": 0.9}',
    "many keys": b"{" + b",".join(b'"k%d":1' % i for i in range(60_000)) + b"}",
    "many classes": b"{" + b",".join(b'"prob_%d":0' % i for i in range(60_000)) + b"}",
    "nothing, often": b"[" + b",".join([b"{}"] * 300_000) + b"]",
    "every row another key": b"[" + b",".join(b'{"k%d":1}' % i for i in range(50_000)) + b"]",
    "rows that alternate": b"[" + b'{"confidence":1},{"score":1},' * 20_000 + b"{}]",
    "the last row is bad": b"[" + b'{"confidence":1},' * 50_000 + b'{"confidence":9}]',
    "many splits": b"["
    + b",".join(b'{"confidence":1,"split":"s%d"}' % i for i in range(500))
    + b"]",
}


def read_peak(pid: int) -> int:
    """The most memory that a process had, in MB."""
    found = re.search(r"VmHWM:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())
    assert found
    return int(found[1]) // 1024
