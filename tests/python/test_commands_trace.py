"""`galatea trace`: what it prints of recorded trace files, and its page in a browser, in light and dark and on a phone."""

import fcntl
import json
import os
import pty
import struct
import subprocess
import termios

import pytest

import browser
import servers

FILES = servers.ROOT / "crates/perf/trace-view/testdata"
KINDS = FILES / "kinds.json"
SPANS = {"receive", "queue", "input", "compute", "output", "steps", "send", "other"}
HOSTILE = "</script><img src=x onerror=\"alert('1')\">&amp;<![CDATA[\x00\u202e]]>"
SHOWN = HOSTILE.replace("\x00", "\ufffd").replace("\u202e", "\ufffd")


def galatea(*words, **options):
    return subprocess.run([servers.galatea_binary(), "trace", *map(str, words)], capture_output=True, text=True, timeout=60, **options)


def shown(*words):
    done = galatea(*words)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def data(*words):
    return json.loads(shown(*words, "--json"))


def events(trace, at, model="m", length=1000, **more):
    """The objects of a request, as the servers write them; `at` and `length` in microseconds."""
    names = ["HTTP_RECV_START", "HTTP_RECV_END", "REQUEST_START", "QUEUE_START", "COMPUTE_START", "COMPUTE_INPUT_END"]
    names += ["COMPUTE_OUTPUT_START", "COMPUTE_END", "INFER_RESPONSE_COMPLETE", "HTTP_SEND_START", "HTTP_SEND_END", "REQUEST_END"]
    step = length * 1000 // (len(names) - 1)
    yield {"id": trace, "model_name": model, "model_version": 1, **more}
    for number, name in enumerate(names):
        yield {"id": trace, "timestamps": [{"name": name, "ns": 5_000_000_000 + at * 1000 + number * step}]}


def test_times_by_model_and_the_slowest_requests():
    text = shown(KINDS)
    # A long path folds the heading.
    assert "8 requests with 3 steps or calls in 23.1 ms\n" in " ".join(text.split("\n\n")[0].splitlines()) + "\n"
    assert "\nnet, version 2: 1 request\n" in text and "p50" in text and "p99" in text
    assert "The 8 slowest requests" in text and "\x1b" not in text
    assert "request id 'e'" in text and "gRPC, no response" in text
    assert "(no model): 1 request, 1 refused before the queue" in text


def test_json_has_every_request_and_its_children():
    found = data(KINDS)
    assert (found["format"], found["request_count"], found["step_count"], found["problems"]) == ("galatea-trace/1", 8, 3, [])
    trees = {tree["rows"][0]["id"]: tree["rows"] for tree in found["requests"]}
    assert [(row["depth"], row["model"], row["version"]) for row in trees[2]] == [(0, "chain", "1"), (1, "pre", "1"), (1, "net", "2")]
    assert [(row["model"], row["parent_id"]) for row in trees[5]] == [("bls", None), ("simple", 5)]
    assert trees[9][0]["protocol"] == "gRPC" and trees[10][0]["responses"] == 2
    for row in (row for rows in trees.values() for row in rows):
        assert {piece["span"] for piece in row["pieces"]} <= SPANS
        assert sum(piece["to_ns"] - piece["from_ns"] for piece in row["pieces"]) == row["total_ns"]
    net = next(model for model in found["models"] if model["name"] == "net")
    assert {span["span"]: span["p99_ns"] for span in net["spans"]} == {"queue": 2_000_000, "input": 100_000, "compute": 4_000_000, "output": 100_000, "other": 10_000}


def test_selections(tmp_path):
    assert [tree["rows"][0]["model"] for tree in data(KINDS, "--slowest", 2)["requests"]] == ["chain", "bls"]
    assert [tree["rows"][0]["id"] for tree in data(KINDS, "--model", "simple")["requests"]] == [1, 6, 7]
    assert [tree["rows"][0]["id"] for tree in data(KINDS, "--id", "e")["requests"]] == [2]
    assert [tree["rows"][0]["id"] for tree in data(KINDS, "--id", "9")["requests"]] == [9]
    assert "send start" in shown(KINDS, "--id", "first") and "send start" not in shown(KINDS)


def test_files_of_a_name_are_read_in_order(tmp_path):
    path = tmp_path / "t.json"
    for number in (10, 2, 0):
        # Each server that wrote into the folder began with trace 1.
        (tmp_path / f"t.json.{number}").write_text(json.dumps([*events(1, number * 5000, f"m{number}")]))
    found = data(path)
    assert found["files"] == [f"{path}.0", f"{path}.2", f"{path}.10"]
    assert (found["request_count"], found["covered_ns"]) == (3, 50_999_999)
    path.write_text("[]")
    assert len(data(path)["files"]) == 4


def test_broken_objects_are_named_and_the_rest_is_shown():
    text = shown(FILES / "unescaped.json")
    assert "3 requests in 2.24 ms" in " ".join(text.splitlines()[:3])
    assert text.count("\nnote: ") == 4 and "object 14 (at byte 885): it is not valid JSON" in text
    cut = shown(FILES / "cut.json")
    assert "the file ends within it" in cut and "simple, version 1: 2 requests" in cut
    assert data(FILES / "cut.json")["problem_count"] == 1


@pytest.mark.parametrize(("words", "code", "message"), [
    ([], 2, "which file? The path of a trace file is expected"),
    ([KINDS, "--slowest", "0"], 2, "--slowest"),
    (["none.json"], 1, "cannot read 'none.json'"),
    ([FILES], 1, "cannot read"),
    ([KINDS, "--model", "sample"], 1, "no request to the model 'sample' was traced; the models are: bls, chain, net, pre, repeat, simple, slow"),
    ([KINDS, "--id", "unknown"], 1, "no traced request has the id 'unknown'"),
    ([KINDS, "--html", "/nowhere/page.html"], 1, "cannot write '/nowhere/page.html'"),
])
def test_refusals(words, code, message):
    done = galatea(*words)
    assert (done.returncode, done.stdout) == (code, "")
    assert message in done.stderr, done.stderr


def test_files_that_hold_no_traces(tmp_path):
    path = tmp_path / "t.json"
    for text, reason in (("", "it is empty"), ("[]", "it is empty"), ("hello", "it is no object"), ('{"a": 1}', "missing field `id`")):
        path.write_text(text)
        done = galatea(path)
        assert done.returncode == 1 and f"'{path}' holds no traces: " in done.stderr and reason in done.stderr
    path.write_text('[{"id":1,"activity":"TENSOR_QUEUE_INPUT","tensor":{"name":"I","data":"1","shape":"1","dtype":"INT32"}}]')
    assert "no request has times" in galatea(path).stderr


def on_terminal(width, *words, **variables):
    """What the command prints to a terminal of this width."""
    main, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 40, width, 0, 0))
    inherited = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "NO_COLOR")}
    child = subprocess.Popen([servers.galatea_binary(), "trace", *map(str, words)], stdout=terminal, env={**inherited, "TERM": "xterm", **variables})
    os.close(terminal)
    text = b""
    while True:
        try:
            piece = os.read(main, 65536)
        except OSError:
            break
        if not piece:
            break
        text += piece
    os.close(main)
    assert child.wait() == 0
    return text.decode().replace("\r\n", "\n")


def test_a_terminal_gets_colours_and_lines_that_fit():
    assert "\x1b[34m█" in on_terminal(80, KINDS)
    for width in (50, 80, 120):
        plain = on_terminal(width, KINDS, NO_COLOR="1")
        assert "\x1b" not in plain and max(map(len, plain.splitlines())) <= width
    assert "\x1b" not in on_terminal(80, KINDS, TERM="dumb")


# --- the page

FAULTS = """(() => {
  const faults = [];
  const ids = [...document.querySelectorAll('[id]')].map((node) => node.id);
  if (new Set(ids).size !== ids.length) faults.push('an id twice');
  if (document.querySelector('img, link, a, iframe, use, image, [src], [href]')) faults.push('something from outside');
  if (document.scripts.length !== 2) faults.push('a foreign script');
  for (const node of document.querySelectorAll('main *')) {
    for (const { name, value } of node.attributes) if (name.startsWith('on') || /NaN|Infinity|undefined|null/.test(value)) faults.push(`${name}=${value}`);
  }
  if (/NaN|Infinity|undefined|null/.test(document.querySelector('main').textContent)) faults.push('what is no number');
  for (const chart of document.querySelectorAll('svg.chart')) {
    const said = chart.getAttribute('aria-labelledby').split(' ').map((id) => document.getElementById(id)?.textContent);
    if (said.length !== 2 || !said.every(Boolean)) faults.push('a chart without its name and description');
    const { width, height } = chart.viewBox.baseVal;
    if (!chart.getClientRects().length) continue;
    for (const text of chart.querySelectorAll('text')) {
      const box = text.getBBox();
      if (box.x < -0.5 || box.y < -0.5 || box.x + box.width > width + 0.5 || box.y + box.height > height + 0.5) faults.push(`clipped: ${text.textContent}`);
    }
  }
  return faults;
})()"""


@pytest.fixture(scope="module")
def chromium():
    with browser.open_browser() as running:
        yield running


@pytest.fixture
def page(chromium, tmp_path):
    """Opens the page of trace files. Every test ends with a page that complains about nothing."""

    def show(*words):
        path = tmp_path / "page.html"
        assert f"wrote {path}" in shown(*words, "--html", path)
        chromium.goto(path.as_uri())
        return chromium

    yield show
    assert chromium.take_errors() == []


def many_requests():
    """Ensembles with steps of other lengths, and more requests than a page draws at once."""
    for number in range(120):
        request_id = f"request-{number}"
        length = 4000 + number * 37 % 1000
        yield from events(10 * number, number * 2500, "summarize_documents", length, request_id=request_id)
        yield from events(10 * number + 1, number * 2500 + 400, "tokenize", 700, parent_id=10 * number, request_id=request_id)
        yield from events(10 * number + 2, number * 2500 + 1200, "a-model-with-a-name-that-is-far-too-long-for-a-phone", 2000, parent_id=10 * number)


@pytest.fixture
def many(tmp_path):
    path = tmp_path / "many.json"
    path.write_text(json.dumps([*many_requests()]))
    return path


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1200, 360])
def test_page_can_be_read(page, many, scheme, width, tmp_path):
    shown = page(KINDS, many)
    try:
        shown.emulate(scheme)
        shown.resize(width, 900)
        shown.click("details.request:nth-of-type(2) summary")
        shown.wait("document.querySelectorAll('details.request[open] svg.chart').length === 4")
        shown.evaluate("document.querySelectorAll('details.request[open] details, #models details').forEach((box) => { box.open = true; })")
        assert shown.evaluate(FAULTS) == []
        assert shown.overflow() <= 0
        assert shown.violations() == []
        if folder := os.environ.get("GALATEA_PICTURES"):
            shown.screenshot(f"{folder}/trace-{scheme}-{width}.png", whole=True)
    finally:
        shown.emulate("no-preference")
        shown.resize(*browser.VIEW)


def test_page_shows_requests_and_opens_them_by_key(page):
    shown = page(KINDS)
    assert shown.evaluate("document.title") == "kinds.json – traced requests"
    assert shown.count("details.request") == 8 and shown.count("details.request[open]") == 1
    first, second = shown.texts("details.request > summary")[:2]
    assert first.startswith("1. 7.60\u00a0ms chain, version 1") and "request id e" in first and second.startswith("2. 4.30\u00a0ms bls")
    assert "net, version 2, trace 4: 6.21\u00a0ms, from 1.10\u00a0ms on" in shown.evaluate("document.querySelector('details.request desc').textContent")
    shown.evaluate("document.querySelectorAll('details.request > summary')[1].focus()")
    shown.press_key("Enter")
    shown.wait_for("details.request:nth-of-type(2)[open] svg.chart")
    shown.press_key("Enter")
    shown.wait("document.querySelectorAll('details.request[open]').length === 1")


def test_page_names_broken_objects(page):
    shown = page(FILES / "unescaped.json")
    assert shown.text(".warnings h2") == "4 faults in the files"
    assert "it is not valid JSON" in shown.text(".warnings li")
    assert shown.count("details.request") == 3


def test_page_takes_nothing_from_a_file_as_markup(page, tmp_path):
    path = tmp_path / "t.json"
    path.write_text(json.dumps([*events(1, 0, HOSTILE, request_id=HOSTILE), *events(2, 100, HOSTILE, parent_id=1)]))
    shown = page(path)
    assert SHOWN in shown.text("details.request summary")
    assert shown.evaluate(FAULTS) == []
