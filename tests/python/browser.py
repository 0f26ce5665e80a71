"""A real browser for the tests: opens pages, clicks, types, looks, and collects what pages complain about."""

import contextlib
import shutil
import sys
from pathlib import Path

import pytest

import waiting

PEERS = Path(__file__).resolve().parents[2] / "target/peers"
PACKAGES = PEERS / "browser/python"
AXE = PEERS / "browser/node_modules/axe-core/axe.min.js"
NAMES = ("chromium", "chromium-browser", "google-chrome")
FLAGS = (
    "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking"
    " --disable-component-update --disable-sync --disable-default-apps --force-color-profile=srgb"
).split()
WAIT_MS = 20_000
# Chromium says this of each answer that is an error; tests ask for such answers.
ROUTINE = "Failed to load resource"
VIEW = (1000, 1000)


def missing():
    """Why there is no browser here, or `None`."""
    if not any(map(shutil.which, NAMES)):
        return "there is no Chromium on this machine"
    if not (PACKAGES / "playwright").is_dir():
        return "playwright is not installed: cargo xtask setup"
    return None


@contextlib.contextmanager
def open_browser(width=VIEW[0], height=VIEW[1], **context):
    """A page of a new browser; the test is skipped where there is none."""
    if reason := missing():
        pytest.skip(reason)
    # At the end: packages of the tests' own environment come first.
    if str(PACKAGES) not in sys.path:
        sys.path.append(str(PACKAGES))
    from playwright.sync_api import sync_playwright

    program = next(filter(None, map(shutil.which, NAMES)))
    with sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=program, args=FLAGS)
        try:
            yield Page(chromium.new_context(viewport={"width": width, "height": height}, locale="en-US", timezone_id="UTC", **context))
        finally:
            chromium.close()


class Page:
    """One page. `tab` is the library's own object for it."""

    def __init__(self, context):
        self.context = context
        self.tab = context.new_page()
        self.tab.set_default_timeout(WAIT_MS)
        self.errors = []
        self.tab.on("pageerror", lambda error: self.errors.append(str(error)))
        self.tab.on("console", self._said)

    def _said(self, message):
        if message.type in ("error", "warning") and not message.text.startswith(ROUTINE):
            self.errors.append(message.text)

    def take_errors(self):
        """What went wrong in the page since it was asked last: exceptions, broken rules of its policy, warnings."""
        self.evaluate("1")
        taken, self.errors = self.errors, []
        return taken

    def goto(self, url):
        """The stream of events never ends, so the end of loading is that of the document and its scripts."""
        self.tab.goto(url, wait_until="load")

    def evaluate(self, expression):
        """The value of an expression; a promise is waited for."""
        return self.tab.evaluate(expression)

    def wait(self, expression):
        """Until the expression is true."""
        # Asked again and again from outside: the policy of the page lets no text be run within it.
        waiting.eventually(f"the page has {expression}", lambda: self.evaluate(f"Boolean({expression})"))

    def wait_for(self, selector, text=None):
        """Until there is such an element, with this text in it if one is given."""
        found = self.tab.locator(selector)
        (found.filter(has_text=text) if text is not None else found).first.wait_for()

    def text(self, selector):
        return self.tab.locator(selector).first.inner_text().strip()

    def texts(self, selector):
        return [text.strip() for text in self.tab.locator(selector).all_inner_texts()]

    def count(self, selector):
        return self.tab.locator(selector).count()

    def click(self, selector):
        self.tab.locator(selector).first.click()

    def fill(self, selector, text):
        self.tab.locator(selector).first.fill(text)

    def press_key(self, key):
        """To what has the focus: `Enter`, `Tab`, `Shift+Tab`, `a`."""
        self.tab.keyboard.press(key)

    def type(self, text):
        """Key by key, to what has the focus."""
        self.tab.keyboard.type(text)

    def set_files(self, selector, files):
        self.tab.locator(selector).first.set_input_files([str(file) for file in files])

    def resize(self, width, height):
        self.tab.set_viewport_size({"width": width, "height": height})

    def emulate(self, colors=None, motion=None):
        """`colors`: light or dark, `motion`: reduce or no-preference, as the system of its user prefers."""
        self.tab.emulate_media(color_scheme=colors, reduced_motion=motion)

    def screenshot(self, path, whole=False):
        self.tab.screenshot(path=str(path), full_page=whole)

    def overflow(self):
        """By how many pixels the page is wider than the screen."""
        return self.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")

    def violations(self, impacts=("serious", "critical")):
        """What axe finds to keep people from using the page: rule, and the first elements that break it."""
        if not AXE.is_file():
            pytest.skip("axe-core is not installed: cargo xtask setup")
        if not self.evaluate("typeof axe === 'object'"):
            # As an evaluated text: the policy of the page lets no foreign script in.
            self.evaluate(f"{AXE.read_text()};0")
        found = self.evaluate("axe.run(document, {resultTypes: ['violations']}).then((found) => found.violations)")
        told = [(one["id"], [(node["html"][:160], node["failureSummary"]) for node in one["nodes"][:3]]) for one in found if one["impact"] in impacts]
        return told
