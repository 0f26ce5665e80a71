"""The documentation as a site, in a browser: light and dark, coloured code, search, and use by everybody."""

import re
import subprocess

import pytest

import browser
import servers
import tiers

SPHINX = servers.PEERS / "docs-venv/bin/sphinx-build"
PAGES = ("README.html", "search.html", "docs/console.html", "docs/config.html", "docs/first-start.html", "docs/adr/index.html")
EVERY = ("minor", "moderate", "serious", "critical")

pytestmark = tiers.peers


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    if not SPHINX.exists():
        pytest.skip("the generator is not installed: cargo xtask setup docs")
    folder = tmp_path_factory.mktemp("site")
    build = [SPHINX, "--quiet", "--fail-on-warning", "--doctree-dir", folder / "state", "--conf-dir", "docs/site", ".", folder / "site"]
    run = subprocess.run(build, cwd=servers.ROOT, capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, run.stderr
    return folder / "site"


@pytest.fixture(scope="module")
def chromium():
    with browser.open_browser() as running:
        yield running


@pytest.fixture
def page(chromium):
    yield chromium
    chromium.resize(*browser.VIEW)
    chromium.emulate("light", "no-preference")


def lightness(page, property="backgroundColor", selector="body"):
    """Of a colour, from 0 to 255."""
    colour = page.evaluate(f"getComputedStyle(document.querySelector('{selector}')).{property}")
    return max(int(channel) for channel in re.findall(r"\d+", colour)[:3])


@pytest.mark.parametrize("colors", ["light", "dark"])
def test_every_page_is_accessible_in_both_colour_schemes(site, page, colors):
    page.emulate(colors, "reduce")
    pages = [name for name in PAGES if (site / name).exists()]
    assert len(pages) >= 5
    for name in pages:
        page.goto((site / name).as_uri())
        assert page.violations(EVERY) == [], name
        assert (lightness(page) < 64) == (colors == "dark"), name


def test_code_is_highlighted(site, page):
    for colors in ("light", "dark"):
        page.emulate(colors, "reduce")
        page.goto((site / "README.html").as_uri())
        seen = page.evaluate("[...new Set([...document.querySelectorAll('.highlight pre span')].map((part) => getComputedStyle(part).color))].length")
        assert seen >= 3, colors


def test_the_search_finds_a_word(site, page):
    page.goto((site / "docs/index.html").as_uri())
    page.fill(".sidebar-search", "perf_analyzer")
    page.press_key("Enter")
    page.wait_for("#search-results a[href*='perf']")


def test_a_phone_needs_no_sideways_scrolling(site, page):
    page.resize(360, 740)
    for name in PAGES:
        if (site / name).exists():
            page.goto((site / name).as_uri())
            assert page.overflow() <= 0, name
