"""How much may it decide alone?.

The largest share whose risk stays below a limit, ties kept together.
"""

from importlib.resources import files

import howsure as hs

path = str(files("howsure") / "data" / "fashion_mnist_cnn.npz")
test = hs.read(path, split="test")
t = hs.tally(test.confidence, correct=test.correct)
for risk in (0.005, 0.01, 0.02, 0.05):
    print(f"at most {risk:.1%} wrong: {hs.coverage_at_risk(t, risk):.1%} accepted")
