"""Pictures of the built site: `python -m docs.shots_site --to FOLDER [--site SITE] [--keep
docs/screenshots]`.

The landing page, the API, the gallery, and the page that evaluates files before a file, with one
and with its report, each in a wide window and on a phone, light and dark. `--keep` writes those
that the documentation shows, made small. The file is one of HOWSURE_SHARED (`../shared`).
"""

from __future__ import annotations

import argparse
import base64
import contextlib
import functools
import http.server
import itertools
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from docs.build import SITE
from docs.shots import PHONE, SHARED, WIDE, chromium, compressed

FILE = SHARED / "data" / "eurosat_rgb.npz"
UNNAMED = SHARED / "data2" / "clinical_dcurves" / "df_binary.csv"  # its columns say nothing
WINDOWS = {"desktop": (WIDE, 900), "phone": (PHONE, 844)}
SCHEMES = {"": "light", "_dark": "dark"}
PAGES = {"landing": "index.html", "api": "api/howsure.html", "gallery": "gallery.html"}
SHOWN = {
    "app_file_desktop": 800,
    "app_file_desktop_dark": 800,
    "app_ask_desktop": 800,
    "app_after_desktop": 800,
    "app_file_phone": 390,
    "app_file_phone_dark": 390,
}
PATIENCE = 300  # seconds


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


@contextlib.contextmanager
def served(folder: Path) -> Iterator[str]:
    """The address of a server for a folder."""
    server = http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), functools.partial(_Quiet, directory=str(folder))
    )
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()


def taken(driver) -> bytes:
    return base64.b64decode(
        driver.execute_cdp_cmd("Page.captureScreenshot", {"format": "png"})["data"]
    )


def until(driver, code: str) -> None:
    end = time.monotonic() + PATIENCE
    while not driver.execute_script(f"return !!({code})"):
        if time.monotonic() > end:
            raise SystemExit(f"never: {code}")
        time.sleep(0.2)


def app(driver, address: str) -> Iterator[tuple[str, bytes]]:
    """The page that evaluates: before a file, with one that it asks about, with one that it reads,
    and with its report.
    """
    driver.get(f"{address}app/index.html")
    until(driver, "navigator.serviceWorker.controller && document.querySelector('iframe')")
    driver.switch_to.frame(driver.find_element("tag name", "iframe"))
    until(driver, "window.howsure && howsure.state.ready")
    yield "app_before", taken(driver)
    driver.find_element("id", "pick").send_keys(str(UNNAMED))
    until(driver, "document.querySelector('#files .choices')")
    yield "app_ask", taken(driver)
    driver.find_element("css selector", "#files [aria-label^=Remove]").click()
    until(driver, "!document.getElementById('hint').hidden")
    driver.find_element("id", "pick").send_keys(str(FILE))
    until(driver, "[...howsure.state.files.values()].some((f) => f.found)")
    until(
        driver, "!document.getElementById('job').hidden && !document.getElementById('run').disabled"
    )
    yield "app_file", taken(driver)
    driver.execute_script("document.getElementById('run').click()")
    until(driver, "howsure.state.answer && document.querySelector('#report iframe')")
    time.sleep(2)  # the report is a page of its own, which draws itself
    yield "app_after", taken(driver)
    driver.switch_to.default_content()


def set_up(driver, window: str, scheme: str) -> None:
    """The size of the window, and light or dark."""
    width, height = WINDOWS[window]
    size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    feature = {"name": "prefers-color-scheme", "value": SCHEMES[scheme]}
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})


def shots(site: Path, to: Path, keep: Path | None) -> None:
    to.mkdir(parents=True, exist_ok=True)
    with served(site) as address, chromium() as driver:
        for window, scheme in itertools.product(WINDOWS, SCHEMES):
            set_up(driver, window, scheme)
            for name, page in PAGES.items():
                driver.get(address + page)
                (to / f"{name}_{window}{scheme}.png").write_bytes(taken(driver))
            for name, png in app(driver, address):
                (to / f"{name}_{window}{scheme}.png").write_bytes(png)
    if keep is not None:
        for name, width in SHOWN.items():
            (keep / f"{name}.png").write_bytes(compressed((to / f"{name}.png").read_bytes(), width))


if __name__ == "__main__":
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--site", type=Path, default=SITE, help="the built site")
    asked.add_argument("--to", type=Path, required=True, help="where the pictures are written")
    asked.add_argument(
        "--keep", type=Path, help="where those that the documentation shows are written"
    )
    given = asked.parse_args()
    shots(given.site.resolve(), given.to.resolve(), given.keep)
