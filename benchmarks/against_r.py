"""The clinic's numbers beside those of R: `rms::val.prob` and `pROC`, on made cases and on a CSV file.

`python -m benchmarks.against_r [cases.csv]` needs Rscript with the packages rms and pROC (Debian:
r-cran-rms, r-cran-proc). The file has columns p and y. Prints a Markdown table for docs/clinic.md.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

import howsure as hs

PROGRAM = """
suppressMessages({library(rms); library(pROC)})
d <- read.csv(commandArgs(TRUE)[1])
v <- val.prob(d$p, d$y, pl = FALSE)
r <- roc(d$y, d$p, quiet = TRUE, direction = "<")
ci <- ci.auc(r)
g <- glm(y ~ qlogis(p), data = d, family = binomial)
k <- confint.default(g)
large <- glm(y ~ offset(qlogis(p)), data = d, family = binomial)
for (name in c("C (ROC)", "Intercept", "Slope", "Emax", "E90", "Eavg", "S:z", "Brier"))
  cat(name, sprintf("%.10g", v[[name]]), sep = "=", fill = TRUE)
cat("slope low", sprintf("%.10g", k[2, 1]), sep = "=", fill = TRUE)
cat("slope high", sprintf("%.10g", k[2, 2]), sep = "=", fill = TRUE)
cat("in the large", sprintf("%.10g", coef(large)[[1]]), sep = "=", fill = TRUE)
cat("large low", sprintf("%.10g", confint.default(large)[1]), sep = "=", fill = TRUE)
cat("AUC low", sprintf("%.10g", ci[1]), sep = "=", fill = TRUE)
cat("AUC high", sprintf("%.10g", ci[3]), sep = "=", fill = TRUE)
"""


def ask_r(p: np.ndarray, y: np.ndarray) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder) / "cases.csv"
        rows = (f"{a!r},{b}" for a, b in zip(p.tolist(), y.tolist(), strict=True))
        table.write_text("p,y\n" + "\n".join(rows) + "\n")
        program = Path(folder) / "program.R"
        program.write_text(PROGRAM)
        call = ["Rscript", "--vanilla", str(program), str(table)]
        done = subprocess.run(call, capture_output=True, text=True, check=True)
    values: dict[str, float] = {}
    for line in done.stdout.splitlines():
        name, _, value = line.partition("=")
        values[name.strip()] = float(value)
    return values


def compute_own(p: np.ndarray, y: np.ndarray) -> dict[str, float]:
    preds = hs.Predictions.from_probs(p, y)
    distance = hs.calibration_distance(preds, smoother="lowess")
    slope = hs.interval(hs.calibration_slope, preds)
    area = hs.interval(hs.class_auroc, preds)
    return {
        "C (ROC)": hs.class_auroc(preds),
        "Intercept": hs.calibration_intercept(preds),
        "Slope": hs.calibration_slope(preds),
        "Emax": distance.emax,
        "E90": distance.e90,
        "Eavg": distance.ici,
        "S:z": hs.spiegelhalter_z(preds),
        "Brier": hs.brier(preds) / 2,
        "slope low": slope[0],
        "slope high": slope[1],
        "in the large": hs.calibration_in_the_large(preds),
        "large low": hs.interval(hs.calibration_in_the_large, preds)[0],
        "AUC low": area[0],
        "AUC high": area[1],
    }


def make_cases(n: int, seed: int, digits: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    z = rng.normal(-1, 1.5, n)
    p = (1 / (1 + np.exp(-z))).round(digits).clip(10.0**-digits, 1 - 10.0**-digits)
    return p, (rng.random(n) < 1 / (1 + np.exp(-0.8 * z + 0.3))).astype(int)


def main(argv: list[str]) -> None:
    sets = {f"{n:,} made cases, {d} digits": make_cases(n, n, d) for n, d in ((200, 12), (1000, 2))}
    for path in argv:
        table = np.genfromtxt(path, delimiter=",", names=True)
        sets[Path(path).stem] = table["p"], table["y"].astype(int)
    for name, (p, y) in sets.items():
        theirs, own = ask_r(p, y), compute_own(p, y)
        print(f"\n{name}\n\n| number | R | howsure | difference |\n|---|---:|---:|---:|")
        for key, value in theirs.items():
            print(f"| {key} | {value:.6f} | {own[key]:.6f} | {own[key] - value:.1e} |")


if __name__ == "__main__":
    main(sys.argv[1:])
