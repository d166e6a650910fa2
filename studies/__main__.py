"""`python -m studies NAME --data DIR --out DIR`."""

import argparse
import sys
from pathlib import Path

import torch

from .demo import demo, summary


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m studies")
    parser.add_argument("name")
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    torch.set_num_threads(1)
    print(summary(demo(args.data, args.out)))
    return 0


sys.exit(main())
