"""Moved."""

from howsure.report.report import build_provenance as provenance
from howsure.report.report import hash_file as file_digest
from howsure.report.report import list_versions as versions
