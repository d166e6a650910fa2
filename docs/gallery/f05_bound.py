"""How few errors prove how little risk?.

Clopper and Pearson: no error in 300 still allows 1 %.
"""

from howsure import bounds

for errors in (0, 1, 5):
    print(f"{errors} of 300 wrong: at most {bounds.clopper_pearson(errors, 300, 0.05):.4f}")
