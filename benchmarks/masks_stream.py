"""Masks larger than the memory: a file of logits is made image by image and evaluated under a limit
of address space.

`python -m benchmarks.masks_stream FOLDER 4.3 1500`: gigabytes of the file, megabytes that the
process may map. Prints the sizes and the peak of resident memory. The file is removed.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import IO

import numpy as np

CLASSES, SIDE = 150, 256


def written(path: Path, images: int, *, classes: int = CLASSES, side: int = SIDE) -> Path:
    """An npz with logits (images, classes, side, side) as float32 and labels, never more than one
    image in memory.
    """
    rng = np.random.default_rng(0)
    noise = rng.standard_normal((classes, side, side), dtype=np.float32)
    shift = rng.integers(0, side, images)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as file:
        with file.open("logits.npy", "w", force_zip64=True) as out:
            _header(out, (images, classes, side, side), np.float32)
            for i in range(images):
                logits = np.roll(noise, int(shift[i]), axis=2) * np.float32(0.5 + i / images)
                np.put_along_axis(
                    logits, _truth(i, images, classes, side)[None], np.float32(2.5), axis=0
                )
                out.write(logits.tobytes())
        with file.open("labels.npy", "w", force_zip64=True) as out:
            _header(out, (images, side, side), np.uint8)
            for i in range(images):
                out.write(_truth(i, images, classes, side).astype(np.uint8).tobytes())
    return path


def _truth(i: int, images: int, classes: int, side: int) -> np.ndarray:
    """Bands of classes whose place depends on the image."""
    rows = (np.arange(side) + i * side // images) * classes // side % classes
    return np.repeat(rows[:, None], side, axis=1)


def _header(out: IO[bytes], shape: tuple[int, ...], dtype: type) -> None:
    descr = np.lib.format.dtype_to_descr(np.dtype(dtype))
    np.lib.format.write_array_header_2_0(
        out, {"descr": descr, "fortran_order": False, "shape": shape}
    )


def main(folder: str, gigabytes: float, megabytes: int) -> None:
    """Make the file, evaluate it under the limit, say what it took."""
    images = max(2, round(gigabytes * 1e9 / (SIDE * SIDE * (CLASSES * 4 + 1))))
    path = written(Path(folder) / "masks.npz", images)
    words = [
        sys.executable,
        "-m",
        "howsure",
        "evaluate",
        str(path),
        "--loss",
        "dice",
        "--compact",
        "--json",
    ]
    limit = megabytes << 20
    done = subprocess.run(
        words,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)),
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
    )
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    size = path.stat().st_size
    path.unlink()
    if done.returncode:
        raise SystemExit(f"exit code {done.returncode}: {done.stderr}")
    report = json.loads(done.stdout)
    print(f"file {size / 1e9:.2f} GB, {images:,} images, {report['n']:,} pixels, {CLASSES} classes")
    print(f"address space at most {megabytes:,} MB, resident peak {used.ru_maxrss / 1024:,.0f} MB")
    print(
        f"CPU {used.ru_utime + used.ru_stime:,.0f} s, 1 - Dice {report['metrics']['dice_loss']['value']:.4f}"
    )


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]), int(sys.argv[3]))
