"""Make docs/figures/report.png: the report of ``triscreen demo``, as a browser shows it.

    python docs/pictures.py                          # some minutes: the demo, then its picture
    python docs/pictures.py PAGE.html FOLDER         # all of a page: 1280 and 400 pixels wide, light and dark

It needs Debian's chromium and chromium-driver, and selenium. A page with an error on its console is refused.
"""

from __future__ import annotations

import base64
import shutil
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path

from selenium import webdriver

FLAGS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--hide-scrollbars",
         "--disable-background-networking", "--disable-component-update", "--disable-sync")  # fmt: skip
WIDTH = 1180
# Of the picture in README: from the title to the first two charts of what was proven.
HEIGHT = "return document.querySelectorAll('#proven figure')[1].getBoundingClientRect().bottom + scrollY + 20"
ALL = "return document.documentElement.scrollHeight"


@contextmanager
def browser():
    """Yield a browser with a profile of its own."""
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        for flag in (*FLAGS, f"--user-data-dir={profile}"):
            options.add_argument(flag)
        driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(shutil.which("chromedriver")))
        try:
            yield driver
        finally:
            driver.quit()


def take(driver, page, picture, width, height=ALL, dark=False):
    """Write a picture of a page; height: a script that says how much of it."""
    scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": scheme})
    metrics = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    driver.get(page.resolve().as_uri())
    driver.execute_async_script("setTimeout(arguments[0], 1000)")
    wrong = [entry for entry in driver.get_log("browser") if entry["level"] in ("SEVERE", "WARNING")]
    if wrong:
        sys.exit(f"{page}: {wrong}")
    clip = {"x": 0, "y": 0, "width": width, "height": int(driver.execute_script(height)), "scale": 1}
    shot = {"captureBeyondViewport": True, "clip": clip}
    picture.write_bytes(base64.b64decode(driver.execute_cdp_cmd("Page.captureScreenshot", shot)["data"]))


def main():
    """Make what the arguments ask for."""
    if sys.argv[1:]:
        page, folder = map(Path, sys.argv[1:])
        with browser() as driver:
            for width in (1280, 400):
                for dark in (False, True):
                    name = f"{page.stem}-{width}-{'dark' if dark else 'light'}.png"
                    take(driver, page, folder / name, width, dark=dark)
        return
    from triscreen.cli.show import demo

    with tempfile.TemporaryDirectory() as folder, browser() as driver:
        page = Path(folder) / "report.html"
        try:
            demo(output=page, quiet=True, debug=True)
        except Exception as done:  # commands end so
            if getattr(done, "exit_code", 1):
                raise
        take(driver, page, Path(__file__).parent / "figures/report.png", WIDTH, HEIGHT)


if __name__ == "__main__":
    main()
