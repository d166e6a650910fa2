"""Moved."""

from howsure.report.catalogue import BY_NAME as BY_NAME
from howsure.report.catalogue import CATALOGUE as CATALOGUE
from howsure.report.catalogue import PERCENT_NUMBERS as SHARES
from howsure.report.catalogue import QUESTIONS as QUESTIONS
from howsure.report.catalogue import RANK as RANK
from howsure.report.catalogue import READ as READ
from howsure.report.catalogue import TERMINAL_NUMBERS as MAIN
from howsure.report.catalogue import CatalogueItem as Item
from howsure.report.catalogue import make_item as item
