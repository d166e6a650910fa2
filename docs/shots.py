"""Seven pages of real data and their pictures: `python -m docs.shots --pages FOLDER [--to
docs/screenshots]`.

Evaluate, two classes, calibration, comparison, monitoring, segmentation and many labels are written
to FOLDER by the commands that users type. With `--to`, Chromium takes the first screen of each,
light and on a phone (390 px), and with `--whole` all of each, dark and on paper too. The data are
those of HOWSURE_SHARED (`../shared`), which are not ours to pass on.
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
NETWORKS = {  # files of HOWSURE_SHARED, and millions of parameters
    "mobilenetv3-large": ("imagenet_models/timm_mobilenetv3_large_100", 5.5),
    "efficientnet-b1": ("imagenet_models/timm_efficientnet_b1", 7.8),
    "densenetblur121d": ("imagenet_models/timm_densenetblur121d", 8.0),
    "efficientnet-b3a": ("data/in1k_timm_efficientnet_b3a", 12.2),
    "resnet34": ("imagenet_models/timm_resnet34", 21.8),
    "densenet161": ("imagenet_models/tv_densenet161", 28.7),
    "resnet101": ("imagenet_models/tv_resnet101", 44.5),
    "resnext101-32x8d": ("data/in1k_tv_resnext101_32x8d", 88.8),
}
SATELLITE = "annual crop,forest,herbaceous,highway,industrial,pasture,permanent crop,residential,river,sea or lake"
WIDE, PHONE, PAPER, MARGIN = 1280, 390, 718, 30  # pixels; A4 between its margins
SHOTS = {
    "light": (WIDE, 930, 780),
    "dark": (WIDE, 930, 780),
    "phone": (PHONE, 844, 390),
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
        shutil.copy(SHARED / f"{file}.npz", f"{name}.npz")
    shutil.copy(SHARED / "data2" / "multilabel_chexnet" / "chexnet_nih14.npz", "chest.npz")


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
        "comparison": ["compare", *files, "--split", "test", *costs, "--cost-name", "millions of parameters"],
        "monitoring": ["monitor", "loans_reference.csv.gz", "loans_analysis.csv.gz", *loans,
                       "--labels", "loans_analysis_target.csv.gz"],
        "segmentation": ["evaluate", "membrane.npz", "--loss", "dice", "--images", "slices.npy"],
        "labels": ["evaluate", "chest.npz", "--multilabel"],
    }  # fmt: skip


def pages(to: Path) -> None:
    """All pages."""
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
    few = [made.quantize(160, method=how, kmeans=3, dither=Image.Dither.NONE) for how in (0, 1)]
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
                # First screens alone are kept in the docs: of all, light and on a phone.
                if not whole and (kind == "print" or (kind == "dark" and name != "evaluate")):
                    continue
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
