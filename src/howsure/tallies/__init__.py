"""Scores and outcomes come in, sorted tables go out: one row per distinct score, most trusted
first; `+` merges two.
"""

from howsure.tallies.building import SetTally, dice_tally, set_tally, tally
from howsure.tallies.tally import Tally

__all__ = ["SetTally", "Tally", "dice_tally", "set_tally", "tally"]
