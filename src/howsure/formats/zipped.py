"""Moved."""

from howsure.formats.zip_archives import check_members as members
from howsure.formats.zip_archives import refuse_damaged_zip as reading
