"""Make page-dark.png and page-light.png from a real run of `fairlock demo`, with Debian's Chromium.

    ./dev python docs/make_page_pictures.py
"""

import json
import subprocess
import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

HERE = Path(__file__).parent
SIZE = {"width": 1480, "height": 1000}
OPTIONS = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]


def make_pictures(chromium: str) -> None:
    """Wait until the demo has a deadlock and a history of two minutes, and take both pictures."""
    command = [sys.executable, "-m", "fairlock", "demo", "--port", "0", "--json", "--no-browser"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as demo, sync_playwright() as playwright:
        assert demo.stdout is not None
        try:
            base, _, token = json.loads(demo.stdout.readline())["url"].partition("#")
            browser = playwright.chromium.launch(executable_path=chromium, args=OPTIONS)
            page = browser.new_page(viewport=SIZE, color_scheme="dark")
            page.goto(f"{base}?span=120#{token}")
            page.wait_for_timeout(60_000)
            page.locator(".ring svg").wait_for(timeout=120_000)
            for scheme in ("dark", "light"):
                page.emulate_media(color_scheme=scheme)
                page.wait_for_timeout(1500)
                page.screenshot(path=HERE / f"page-{scheme}.png")
            browser.close()
        finally:
            demo.terminate()


if __name__ == "__main__":
    make_pictures(sys.argv[1] if len(sys.argv) > 1 else "/usr/bin/chromium")
