"""A real Chromium, driven by Selenium over Debian's chromedriver; and the page, served on loopback."""

import shutil
import threading
import time

import pytest
import uvicorn
from starlette.responses import HTMLResponse
from tests.api.conftest import serve
from tests.api.fleet_of import big_fleet

from hostler.api.tokens import TokenDoor

TOKEN = "made-up-token-of-enough-length"
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--window-size=1560,1340",
)  # fmt: skip
PATIENCE_S = 30.0
AROUND = """<!doctype html><html class="dark"><title>Airflow, as far as the page can tell</title>
<iframe sandbox="allow-scripts allow-same-origin allow-forms allow-downloads" src="/" width="1400" height="900"></iframe>"""


@pytest.fixture(scope="session")
def chromium(tmp_path_factory):
    """The browser (a Selenium driver)."""
    browser, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if not browser or not driver:
        pytest.skip("no chromium and chromedriver: apt-get install chromium chromium-driver")
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = browser
    for flag in (*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('chromium')}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    made = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
    yield made
    made.quit()


def with_surroundings(app):
    """Beside the page, on its origin, a page that puts it into a frame as Airflow 3.3.2 does."""

    async def whole(scope, receive, send):
        inner = HTMLResponse(AROUND) if scope["path"] == "/around" else app
        await inner(scope, receive, send)

    return whole


class Served:
    """A page on loopback. ``ledger``: what it shows. ``url``: with the login in it."""

    def __init__(self, ledger, app):
        self.ledger = ledger
        config = uvicorn.Config(
            with_surroundings(app), host="127.0.0.1", port=0, log_level="warning", lifespan="off", ws="none"
        )
        self.server = uvicorn.Server(config)
        self.thread = threading.Thread(target=self.server.run, daemon=True)
        self.thread.start()
        wait_until(lambda: self.server.started, "the page to be served")
        port = self.server.servers[0].sockets[0].getsockname()[1]
        self.url = f"http://ada:{TOKEN}@127.0.0.1:{port}/"

    def stop(self):
        self.server.should_exit = True
        self.thread.join(timeout=30)


@pytest.fixture(scope="module")
def fleet():
    """2,000 nodes."""
    ledger = big_fleet(2000)
    served = Served(ledger, serve(ledger, TokenDoor(TOKEN), max_age_s=0.2))
    yield served
    served.stop()


def wait_until(check, what):
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        if found := check():
            return found
        time.sleep(0.05)
    raise TimeoutError(f"waited {PATIENCE_S:.0f} s for {what}")
