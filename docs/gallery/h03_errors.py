"""Errors say what to do.

What it is, where, what is needed.
"""

import howsure as hs

try:
    hs.Predictions.from_probs([[0.5, 0.5], [0.9, 0.4]], [0, 1])
except hs.InputError as e:
    print(e)
