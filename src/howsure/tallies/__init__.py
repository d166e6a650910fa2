"""Scores and outcomes come in, sorted tables go out: one row per distinct score, most trusted
first; `+` merges two.
"""

from howsure.tallies.building import tally
from howsure.tallies.sets import SetTally, dice_tally, set_tally
from howsure.tallies.tally import Tally

__all__ = ["SetTally", "Tally", "dice_tally", "set_tally", "tally"]
