"""The load tool's page in a real browser: nothing clipped, nothing over anything else, nothing on the console."""

import html
import json
import os
import re
import shutil
import subprocess

import pytest

import servers
import tiers

BROWSERS = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"]
FLAGS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--hide-scrollbars", "--enable-logging=stderr",
]
SCHEMES = {"light": [], "dark": ["--blink-settings=preferredColorScheme=0"]}
# Colours are the same at every width, and the layout is the same in every colour.
LOOKS = [(1200, "light"), (800, "light"), (420, "dark"), (320, "light")]
LEAST_CONTRAST = 4.5
# Pages with numbers and names of any length.
HUGE_VALUES = {"extremes", "hostile"}
# Two lines of text may share the space that fonts leave above and below their letters.
LEADING = 4

# Runs inside each page and reports to the page around it what it finds.
PROBE = """
addEventListener("load", function () {
  document.querySelectorAll("details").forEach(function (box) { box.open = true; });
  var faults = [];
  document.querySelectorAll("svg.chart").forEach(function (svg) {
    if (svg.getBoundingClientRect().width > innerWidth) { faults.push("a chart is wider than the window"); }
  });
  document.querySelectorAll(".scroll").forEach(function (box) {
    if (!box.querySelector("table")) { faults.push("what scrolls is no table"); }
  });
  function name(node) { return node.tagName + "." + (node.getAttribute("class") || "") + " " + node.textContent.slice(0, 40); }
  var root = document.documentElement;
  if (root.scrollWidth > root.clientWidth) { faults.push("the page is " + root.scrollWidth + " wide"); }
  document.querySelectorAll("svg.chart").forEach(function (svg) {
    var view = svg.viewBox.baseVal;
    var texts = Array.from(svg.querySelectorAll("text"));
    texts.forEach(function (text) {
      var box = text.getBBox();
      if (box.x < -0.5 || box.y < -0.5 || box.x + box.width > view.width + 0.5 || box.y + box.height > view.height + 0.5) {
        faults.push("clipped: " + name(text));
      }
    });
    var boxes = texts.map(function (text) { return text.getBBox(); });
    texts.forEach(function (text, i) {
      for (var j = 0; j < i; j++) {
        var a = boxes[i], b = boxes[j];
        var across = Math.min(a.x + a.width, b.x + b.width) - Math.max(a.x, b.x);
        var down = Math.min(a.y + a.height, b.y + b.height) - Math.max(a.y, b.y);
        if (across > 1 && down > LEADING) { faults.push("over each other: " + name(text) + " and " + name(texts[j])); }
      }
    });
  });
  document.querySelectorAll("p, dt, dd, li, h1, h2, h3, pre, figcaption, summary").forEach(function (node) {
    if (node.scrollWidth > node.clientWidth + 1 && node.clientWidth > 0) { faults.push("too wide: " + name(node)); }
  });
  function channels(colour) {
    var numbers = colour.match(/[0-9.]+/g).slice(0, 3).map(Number);
    return colour.startsWith("color(") ? numbers : numbers.map(function (v) { return v / 255; });
  }
  function luminance(colour) {
    var [r, g, b] = channels(colour).map(function (v) { return v <= 0.04045 ? v / 12.92 : Math.pow((v + 0.055) / 1.055, 2.4); });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  }
  function background(node) {
    for (; node; node = node.parentElement) {
      var colour = getComputedStyle(node).backgroundColor;
      if (colour !== "rgba(0, 0, 0, 0)") { return colour; }
    }
    return "rgb(255, 255, 255)";
  }
  document.querySelectorAll("text:not(.inside), h1, h2, p, dt, dd, th, td, figcaption, li, code, summary").forEach(function (node) {
    var style = getComputedStyle(node);
    var pair = [luminance(node.tagName === "text" ? style.fill : style.color), luminance(background(node))].sort();
    var contrast = (Math.max(...pair) + 0.05) / (Math.min(...pair) + 0.05);
    if (contrast < LEAST_CONTRAST) { faults.push("contrast " + contrast.toFixed(1) + ": " + name(node)); }
  });
  var cut = Array.from(document.querySelectorAll(".scroll")).filter(function (box) { return box.scrollWidth > box.clientWidth; });
  var seen = { cut: cut.map(function (box) { return box.getAttribute("aria-label"); }), charts: document.querySelectorAll("svg.chart").length, paper: getComputedStyle(document.body).backgroundColor };
  parent.postMessage(JSON.stringify({ page: PAGE, faults: faults, seen: seen }), "*");
});
"""


def browser():
    return next(filter(None, map(shutil.which, BROWSERS)), None)


pytestmark = [tiers.peers, pytest.mark.skipif(browser() is None, reason="no Chromium here (Debian package: chromium)")]


def look(folder, *flags):
    """What the browser prints, and what is on its console."""
    profile = folder / "profile"
    run = subprocess.run(
        [browser(), *FLAGS, f"--user-data-dir={profile}", *flags],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=180,
    )
    shutil.rmtree(profile, ignore_errors=True)
    assert run.returncode == 0, run.stderr
    return run.stdout, [line for line in run.stderr.splitlines() if "CONSOLE" in line]


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """Sample pages, with all that seldom happens among them."""
    folder = tmp_path_factory.mktemp("pages")
    cargo = os.environ.get("CARGO", "cargo")
    subprocess.run(
        [cargo, "run", "-q", "-p", "galatea-perf-report", "--example", "sample_report", "--", folder],
        cwd=servers.ROOT, check=True, timeout=900, stdout=subprocess.DEVNULL,
    )
    found = sorted(folder.glob("*.html"))
    assert len(found) > 10
    return found


def probed(pages, folder, width):
    """A page that shows all pages at a width and collects what their probes find."""
    frames = []
    for page in pages:
        script = PROBE.replace("LEADING", str(LEADING)).replace("LEAST_CONTRAST", str(LEAST_CONTRAST))
        script = script.replace("PAGE", json.dumps(page.stem))
        text = page.read_text().replace("</body>", f"<script>{script}</script></body>")
        copy = folder / f"{width}-{page.name}"
        copy.write_text(text)
        frames.append(f'<iframe src="{copy.name}" style="width:{width}px;height:900px;border:0"></iframe>')
    collect = """
      var found = [];
      addEventListener("message", function (event) {
        found.push(JSON.parse(event.data));
        document.getElementById("found").textContent = JSON.stringify(found);
      });
    """
    outer = folder / f"{width}.html"
    outer.write_text(f"<!DOCTYPE html><script>{collect}</script><pre id=found></pre>{''.join(frames)}")
    return outer


@pytest.mark.parametrize(("width", "scheme"), LOOKS)
def test_the_layout_fits_every_width(pages, tmp_path, width, scheme):
    outer = probed(pages, tmp_path, width)
    flags = ["--dump-dom", "--virtual-time-budget=60000", f"--window-size={width + 40},1200"]
    document, console = look(tmp_path, *flags, *SCHEMES[scheme], outer.as_uri())
    found = json.loads(html.unescape(re.search(r'<pre id="found">(.*?)</pre>', document, re.S)[1]))
    assert sorted(one["page"] for one in found) == [page.stem for page in pages]
    assert {one["page"]: one["faults"] for one in found if one["faults"]} == {}
    assert console == []
    if width >= 1200:
        cut = {one["page"]: one["seen"]["cut"] for one in found if one["page"] not in HUGE_VALUES and one["seen"]["cut"]}
        assert cut == {}, "no column is out of sight"
    assert sum(one["seen"]["charts"] for one in found) > 40
    papers = {one["seen"]["paper"] for one in found}
    is_dark = all(int(channel) < 64 for channel in re.findall(r"\d+", papers.pop())[:3])
    assert not papers and is_dark == (scheme == "dark")


@pytest.mark.parametrize("scheme", SCHEMES)
def test_the_page_renders_in_both_colour_schemes(pages, tmp_path, scheme):
    page = next(page for page in pages if page.stem == "two")
    picture = tmp_path / f"{scheme}.png"
    flags = ["--window-size=1120,3400", f"--screenshot={picture}", *SCHEMES[scheme]]
    _, console = look(tmp_path, *flags, page.as_uri())
    assert console == []
    assert picture.read_bytes().startswith(b"\x89PNG")
    # Blank paper packs into far less.
    assert picture.stat().st_size > 100_000
