"""Moved."""

from howsure.formats.text_lines import READ_BLOCK_BYTES as BLOCK
from howsure.formats.text_lines import BadLine as BadLine
from howsure.formats.text_lines import read_blocks as file_blocks
