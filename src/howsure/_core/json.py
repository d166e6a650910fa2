"""Moved."""

from howsure._core.strict_json import Plain as Plain
from howsure._core.strict_json import check_typed as typed
from howsure._core.strict_json import decode as decode
from howsure._core.strict_json import dump_canonical as canonical
from howsure._core.strict_json import dump_line as line
from howsure._core.strict_json import dump_pretty as pretty
from howsure._core.strict_json import encode as encode
from howsure._core.strict_json import loads as loads
from howsure._core.strict_json import to_plain as plain
