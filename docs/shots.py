"""Six pages of real data and their pictures: `python -m docs.shots --pages FOLDER [--to
docs/screenshots]`.

Evaluate, two classes, calibration, comparison, monitoring and segmentation are written to FOLDER by
the commands that users type. With `--to`, Chromium takes each light, dark, on a phone (390 px) and
on paper. The data are those of HOWSURE_SHARED (`../shared`), which are not ours to pass on, and
networks of `studies/predictions`.
"""

from __future__ import annotations

import argparse
import base64
import io
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import chdir, contextmanager
from pathlib import Path

import numpy as np

from howsure.cli import main

ROOT = Path(__file__).parents[1]
SHARED = Path(os.environ.get("HOWSURE_SHARED", ROOT.parent / "shared"))
DRIFT = SHARED / "data2" / "drift_nannyml"
NETWORKS = {  # files of studies/predictions, and parameters
    "densenet-10": ("densenet-10_cifar10_36593c5d", 37_762),
    "densenet-13": ("densenet-13_cifar10_95c6678b", 76_018),
    "densenet-16": ("densenet-16_cifar10_05ef53f1", 127_594),
    "resnet-8": ("resnet-8_cifar10_c8ce7abc", 75_290),
    "resnet-8 dropout": ("resnet-8_cifar10_d1b47518", 75_290),
    "resnet-8 smooth": ("resnet-8_cifar10_ad02408c", 75_290),
    "resnet-14": ("resnet-14_cifar10_9a5c544c", 172_506),
    "resnet-14 raw": ("resnet-14_cifar10_a3e4636e", 172_506),
    "resnet-20": ("resnet-20_cifar10_768237f9", 269_722),
    "resnet-44": ("resnet-44_cifar10_ba2aadd5", 658_586),
    "wrn-10-1": ("wrn-10-1_cifar10_25471b89", 77_850),
    "wrn-16-1": ("wrn-16-1_cifar10_460eefa6", 175_066),
}
SATELLITE = "annual crop,forest,herbaceous,highway,industrial,pasture,permanent crop,residential,river,sea or lake"
WIDE, PHONE, PAPER, MARGIN = 1280, 390, 718, 30  # pixels; A4 between its margins
SHOTS = {
    "light": (WIDE, 1700, 800),
    "dark": (WIDE, 1700, 800),
    "phone": (PHONE, 1500, 390),
    "print": (PAPER, 1016, 718),
}


def inputs() -> None:
    """Real files under short names, in the folder where the commands run."""
    with np.load(SHARED / "data" / "eurosat_rgb.npz", allow_pickle=False) as f:
        np.savez(
            "satellite.npz", class_names=SATELLITE.split(","), **{name: f[name] for name in f.files}
        )
    with np.load(SHARED / "data" / "seg_unet_membrane.npz", allow_pickle=False) as f:
        np.save("slices.npy", f["test_images"])
        arrays = {name: f[f"test_{name}"] for name in ("logits", "labels", "image_ids")}
        np.savez("membrane.npz", class_names=["membrane", "interior"], **arrays)
    shutil.copy(SHARED / "data2" / "clinical_dcurves" / "df_binary.csv", "biopsies.csv")
    shutil.copy(SHARED / "data" / "nn_resnet110_c10.npz", "resnet110.npz")
    for name in ("reference", "analysis", "analysis_target"):
        shutil.copy(DRIFT / f"car_loan_{name}.csv.gz", f"loans_{name}.csv.gz")
    for name, (file, _) in NETWORKS.items():
        shutil.copy(ROOT / "studies" / "predictions" / f"{file}.npz", f"{name}.npz")


def commands() -> dict[str, list[str]]:
    """What is typed for each page."""
    risk = ["--name", "probs=cancerpredmarker", "--name", "labels=cancer"]
    loans = [
        "--name",
        "probs=y_pred_proba",
        "--answers",
        "argmax",
        "--name",
        "labels=repaid",
        "--name",
        "ids=id",
        "--chunk",
        "5000",
    ]
    costs = [word for name, (_, cost) in NETWORKS.items() for word in ("--cost", f"{name}={cost}")]
    files = [f"{name}.npz" for name in NETWORKS]
    return {
        "evaluate": ["evaluate", "satellite.npz", "--split", "test"],
        "binary": ["evaluate", "biopsies.csv", *risk, "--by", "risk_group", "--by", "age:55,65,75"],
        "calibration": ["calibrate", "--fit", "resnet110.npz", "--split", "val", "--on", "resnet110.npz",
                        "--on-split", "test", "-o", "calibrator.json"],
        "comparison": ["compare", *files, "--split", "test", *costs, "--cost-name", "parameters"],
        "monitoring": ["monitor", "loans_reference.csv.gz", "loans_analysis.csv.gz", *loans,
                       "--labels", "loans_analysis_target.csv.gz"],
        "segmentation": ["evaluate", "membrane.npz", "--loss", "dice", "--images", "slices.npy"],
    }  # fmt: skip


def pages(to: Path) -> None:
    """All six pages."""
    to.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        inputs()
        for name, command in commands().items():
            try:
                main([*command, "--html", str(to / f"{name}.html"), "-q"])
            except SystemExit as stop:
                if stop.code:
                    raise
            print(f"{name}: {(to / f'{name}.html').stat().st_size / 1000:.0f} kB")


@contextmanager
def chromium() -> Iterator[object]:
    """Headless Chromium."""
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium")
    for flag in (
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--hide-scrollbars",
        "--force-color-profile=srgb",
    ):
        options.add_argument(flag)
    with webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver"))) as driver:
        yield driver


def shot(driver, page: Path, kind: str, *, whole: bool = False) -> bytes:
    """The first part of a page as PNG, or all of it."""
    width, height, _ = SHOTS[kind]
    scheme = {"name": "prefers-color-scheme", "value": "dark" if kind == "dark" else "light"}
    media = "print" if kind == "print" else ""
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme], "media": media})
    size = {"width": width, "height": 1000, "deviceScaleFactor": 1, "mobile": width < 500}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    driver.get(page.as_uri())
    tall = driver.execute_script("return document.documentElement.scrollHeight")
    clip = {
        "x": 0,
        "y": 0,
        "width": width,
        "height": tall if whole else min(height, tall),
        "scale": 1,
    }
    asked = {"format": "png", "captureBeyondViewport": True, "clip": clip}
    return base64.b64decode(driver.execute_cdp_cmd("Page.captureScreenshot", asked)["data"])


def compressed(png: bytes, width: int) -> bytes:
    """A smaller picture of few colours."""
    from PIL import Image, ImageOps

    made = Image.open(io.BytesIO(png)).convert("RGB")
    made = made.resize((width, round(made.height * width / made.width)), Image.Resampling.LANCZOS)
    if width == PAPER:
        made = ImageOps.expand(made, MARGIN, "white")
    few = [made.quantize(256, method=how, kmeans=3, dither=Image.Dither.NONE) for how in (0, 1)]
    error = [
        np.square(np.asarray(one.convert("RGB"), float) - np.asarray(made, float)).mean()
        for one in few
    ]
    out = io.BytesIO()
    few[int(np.argmin(error))].save(out, "png", optimize=True)
    return out.getvalue()


def shots(of: Path, to: Path, *, whole: bool) -> None:
    """Each page in four ways."""
    to.mkdir(parents=True, exist_ok=True)
    with chromium() as driver:
        for name in commands():
            for kind, (_, _, width) in SHOTS.items():
                png = shot(driver, of / f"{name}.html", kind, whole=whole)
                (to / f"{name}_{kind}.png").write_bytes(png if whole else compressed(png, width))


if __name__ == "__main__":
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--pages", type=Path, required=True, help="where the pages are written")
    asked.add_argument("--to", type=Path, help="where pictures of them are written")
    asked.add_argument(
        "--whole", action="store_true", help="whole pages, not compressed, to look at"
    )
    asked.add_argument("--keep", action="store_true", help="take the pages that are there already")
    given = asked.parse_args()
    if not given.keep:
        pages(given.pages.resolve())
    if given.to is not None:
        shots(given.pages.resolve(), given.to.resolve(), whole=given.whole)
