"""The last traced requests on the page of a model: turned on by a button, drawn in bars, shown to who may."""

import os

import pytest

import auth_cases
import clients
import repositories
import servers
import tiers
from console_trace_models import infer, write_pipeline
from test_console_page import chromium, open_page, page  # noqa: F401: fixtures

HOSTILE = "<img src=x onerror=alert(1)>\u202e</bdi>"
TRACES = ".traces details.trace"
START = "text=Trace the next 20 requests"


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    path = tmp_path_factory.mktemp("traced")
    write_pipeline(path / "models")
    with servers.galatea(path / "models", f"--trace-config=triton,file={path / 'traces.json'}") as running:
        yield running


@tiers.peers
def test_a_button_traces_requests_and_a_click_opens_one(server, page):  # noqa: F811
    open_page(page, server, "#/models/summarize/traces")
    page.wait_for("main", "No request to this model is traced now.")
    assert "curl -d '{\"trace_level\":[\"TIMESTAMPS\"]" in page.text("main pre")
    page.click(START)
    page.wait_for("main", "Every request to this model is traced, 20 more.")
    assert infer(server, "summarize", id=HOSTILE) == 200
    page.wait_for(TRACES)
    shown = page.text(f"{TRACES} summary")
    assert HOSTILE.replace("\u202e", "\ufffd") in shown and "answered" in shown and "HTTP" in shown
    assert page.count("main img") == 0
    page.evaluate(f"document.querySelector('{TRACES} summary').focus()")
    page.press_key("Enter")
    page.wait_for(f"{TRACES} svg.for-wide")
    labels = page.evaluate("[...document.querySelectorAll('.inside svg.for-wide .bar-label')].map((label) => label.firstChild.textContent)")
    assert labels == ["summarize", "route", "encode", "normalize"]
    assert page.evaluate("document.querySelectorAll('.inside svg.for-wide rect title').length") > 8
    rows = page.evaluate("[...document.querySelectorAll('.inside tbody tr')].map((row) => row.cells[0].innerText.trim())")
    assert rows == [f"{name}, version 1" for name in labels]
    # The list stays as it is while one is looked at.
    assert infer(server, "summarize", id="second") == 200
    page.wait_for("text=Show the newer traces")
    assert page.count(TRACES) == 1
    page.click("text=Show the newer traces")
    page.wait(f"document.querySelectorAll('{TRACES}').length === 2")
    assert page.count(f"{TRACES}[open]") == 1
    open_page(page, server, "#/models/encode/traces")
    page.wait_for(TRACES, "a request to summarize, version 1")
    open_page(page, server, "#/models/summarize/traces")
    page.click("text=Follow the server's settings")
    page.wait_for("main", "No request to this model is traced now.")


@tiers.peers
@pytest.mark.parametrize("width", [1200, 360])
@pytest.mark.parametrize("colors", ["light", "dark"])
def test_traces_can_be_read(server, page, colors, width):  # noqa: F811
    setting = {"trace_level": ["TIMESTAMPS"], "trace_rate": "1", "trace_count": "3"}
    assert clients.ask(server.http, "POST", "/v2/models/summarize/trace/setting", setting)[0] == 200
    for number in range(3):
        assert infer(server, "summarize", id=f"request-{number}-" + "long" * 20) == 200
    page.resize(width, 900)
    page.emulate(colors, "reduce")
    open_page(page, server, "#/models/summarize/traces")
    page.wait_for(TRACES)
    page.click(f"{TRACES} summary")
    page.wait_for(f"{TRACES} .inside table")
    assert page.count(".inside svg.chart:visible") == 1
    assert page.overflow() <= 0
    assert page.violations() == []
    if folder := os.environ.get("GALATEA_PICTURES"):
        page.screenshot(f"{folder}/console-traces-{colors}-{width}.png", whole=True)


@tiers.peers
def test_without_a_file_the_button_says_what_is_missing(page, repository, serve):  # noqa: F811
    repository.add("identity", "identity", repositories.identity_config())
    open_page(page, serve(repository.path), "#/models/identity/traces")
    page.wait_for("main", "Start it with --trace-config triton,file=PATH.")
    assert page.evaluate("[...document.querySelectorAll('main button')].find((one) => one.textContent.startsWith('Trace the next')).disabled")
    assert "The button works once traces have a file." in page.text("main")


@tiers.peers
def test_a_reader_sees_traces_and_no_button(page, repository, serve, tmp_path):  # noqa: F811
    repository.add("identity", "identity", repositories.identity_config())
    (tmp_path / "policy.toml").write_text(auth_cases.table_policy())
    traces = ("level=TIMESTAMPS", "rate=1", f"triton,file={tmp_path / 'traces.json'}")
    server = serve(repository.path, f"--auth-policy={tmp_path / 'policy.toml'}", *(f"--trace-config={one}" for one in traces))
    secret = auth_cases.bearer(auth_cases.secret_of("infer"))
    assert infer(server, "identity", headers=secret) == 200
    page.tab.set_extra_http_headers(auth_cases.bearer(auth_cases.secret_of("read")))
    try:
        open_page(page, server, "#/models/identity/traces")
        page.wait_for(TRACES)
        assert "The role control may change the settings of traces." in page.text("main")
        assert page.count(f"{START} >> visible=true") == 0
    finally:
        page.tab.set_extra_http_headers({})
