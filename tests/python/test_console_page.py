"""The console's page in a browser, with a real server behind it: what it shows, what can be done with it, and by whom."""

import re
import threading

import pytest

import browser
import clients
import repositories
import servers
import tiers
from repositories import identity_config

WRONG = "max_batch_size: 8\nmax_batch_sise: 8\n"
FAILING = identity_config(max_batch_size=8) + 'parameters { key: "fail" value { string_value: "execute" } }\n'
PAGES = ("#/", "#/models/identity", "#/models/identity/traces", "#/models/identity/try", "#/models/identity/config", "#/models/wrong", "#/failures", "#/server")
ROWS = "table.models tbody tr"


def infer(server, model="identity", shape=(1, 2), **more):
    tensor = {"name": "INPUT0", "shape": shape, "datatype": "FP32", "data": [1.0, 2.0]}
    return clients.ask(server.http, "POST", f"/v2/models/{model}/infer", {"inputs": [tensor], **more})[0]


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    path = tmp_path_factory.mktemp("models")
    repositories.write_model(path, "identity", "galatea", "identity", identity_config(max_batch_size=8))
    repositories.write_model(path, "spare", "galatea", "identity", identity_config())
    both = identity_config(more="version_policy { all { } }\n")
    repositories.write_model(path, "two", "galatea", "identity", both, versions=(1, 2))
    repositories.write_model(path, "failing", "galatea", "failing", FAILING)
    repositories.write_model(path, "wrong", "galatea", "identity", WRONG)
    with servers.galatea(path, "--model-control-mode=explicit", "--load-model=*", "--exit-on-error=false", f"--trace-config=triton,file={path}/../traces.json") as running:
        running.repository = path
        yield running


@pytest.fixture(scope="module")
def chromium():
    with browser.open_browser() as running:
        yield running


@pytest.fixture
def page(chromium):
    """Every test ends with a page that complains about nothing: no exception, nothing that its policy forbids."""
    yield chromium
    chromium.resize(*browser.VIEW)
    chromium.emulate("light", "no-preference")
    assert chromium.take_errors() == []


@pytest.fixture
def load(server):
    """Requests one after the other, as long as the test runs."""
    is_over = threading.Event()

    def send():
        while not is_over.is_set():
            infer(server)

    thread = threading.Thread(target=send)
    thread.start()
    yield
    is_over.set()
    thread.join()


def open_page(page, server, hash="#/"):
    page.goto("about:blank")
    page.goto(f"http://{server.http}/{hash}")
    page.wait("document.querySelector('#live').dataset.kind === 'live' && document.querySelector('h1')")


def row(model, column=0):
    """An expression: the text of a cell of a model's row."""
    return f"[...document.querySelectorAll('{ROWS}')].find((row) => row.cells[0].innerText === '{model}')?.cells[{column}].innerText"


def test_models_show_states_and_reasons_with_their_caret(server, page):
    open_page(page, server)
    assert [page.evaluate(row(name, 2)) for name in ("identity", "wrong")] == ["Ready", "Failed"]
    reason = page.text(".failed pre").split("\n")
    at = next(number for number, line in enumerate(reason) if "max_batch_sise: 8" in line)
    assert reason[at].index("max_batch_sise") == reason[at + 1].index("^"), reason
    assert "monospace" in page.evaluate("getComputedStyle(document.querySelector('.failed pre')).fontFamily")
    page.click(".failed a")
    page.wait("document.querySelector('h1').textContent === 'wrong'")
    assert "did you mean `max_batch_size`?" in page.text(".why")
    assert page.evaluate("document.title") == "wrong – Galatea"
    assert page.evaluate("document.activeElement.id") == "main", "who uses a keyboard goes on where the page has changed"


@tiers.peers
def test_each_version_has_its_page(server, page):
    open_page(page, server)
    for version in ("1", "2"):
        page.click(f"{ROWS}:has(td:text-is('{version}')) a >> text=two")
        page.wait_for(".versions [aria-current]", f"{version} ready")
        page.click("header >> text=Models")
        page.wait("document.querySelector('table.models')")


@tiers.peers
def test_values_update_in_place_while_requests_run(server, page, load):
    open_page(page, server)
    page.evaluate("void (window.first = document.querySelector('table.models'))")
    page.wait(f"Number({row('identity', 3)}.replace(',', '')) > 0 && {row('identity', 7)}.includes('s')")
    assert page.evaluate("window.first.isConnected"), "the table is changed, not made anew"
    page.click(f"{ROWS} a >> text=identity")
    page.wait("(document.querySelector('.plot path.line')?.getAttribute('d') ?? '').includes('L')")
    page.wait("document.querySelector('.batches tbody tr')?.cells[1].innerText !== '0'")
    assert page.count(".chart") == 4
    assert page.evaluate("document.querySelector('.chart svg[role=img]').getAttribute('aria-label')").startswith("Throughput per second")


@tiers.peers
def test_failed_requests_are_shown_and_filtered_by_model(server, page):
    assert infer(server, "failing", id="the-one") == 500 and infer(server, shape=[1, 3]) != 200
    assert infer(server, "failing", id="the-next") == 500
    open_page(page, server, "#/failures")
    page.wait_for("td.reason", "told to fail")
    page.wait_for("td.reason", "request the-one")
    shown = "[...[...document.querySelectorAll('main table')].at(-1).tBodies[0].rows].map((row) => row.cells[1].innerText)"
    page.wait(f"{shown}.includes('identity') || {shown}.includes('identity 1')")
    page.tab.select_option("#of-model", "failing")
    assert set(page.evaluate(shown)) == {"failing 1"}
    group = page.evaluate("[...document.querySelector('main table').tBodies[0].rows].map((row) => [...row.cells].map((cell) => cell.innerText))")
    assert len(group) == 1 and int(group[0][0]) >= 2, group
    assert re.match(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", group[0][1]) and "request the-next" in group[0][4], group
    assert (group[0][2], group[0][5]) == ("failing 1", "127.0.0.1")


@tiers.peers
def test_failure_rates_are_red_above_their_limit(server, page):
    for _ in range(3):
        infer(server, "failing")
    infer(server)
    open_page(page, server, "#/models/failing")
    failed = "[...document.querySelectorAll('.stat')].find((one) => one.innerText.startsWith('Failed, last 5'))"
    page.wait(f"{failed}?.innerText.includes('100 %') && {failed}.innerText.includes('over 5 %')")
    color = "getComputedStyle({}.querySelector('b')).color"
    red = page.evaluate(color.format(failed))
    page.click("[data-page=models]")
    page.wait(f"{row('failing', 4)} === '100 %'")
    cell = f"[...document.querySelectorAll('{ROWS}')].find((row) => row.cells[0].innerText === 'failing').cells[4]"
    assert page.evaluate(f"getComputedStyle({cell}).color") == red
    open_page(page, server, "#/models/identity")
    page.wait(f"{failed}?.innerText.includes('red over 5 %')")
    assert page.evaluate(color.format(failed)) != red


@tiers.peers
def test_the_advice_in_a_reason_is_wrapped_and_not_cut(server, page):
    page.resize(360, 740)
    open_page(page, server, "#/models/wrong")
    page.wait_for(".why .wrapped")
    for line in range(page.count(".why .wrapped")):
        cut = page.evaluate(f"((node) => node.scrollWidth - node.clientWidth)(document.querySelectorAll('.why .wrapped')[{line}])")
        assert cut <= 0, page.texts(".why .wrapped")


@tiers.peers
def test_a_model_is_unloaded_and_loaded(server, page):
    open_page(page, server, "#/models/spare")
    page.click(".controls >> text=Unload")
    page.click("text=Keep it")
    assert page.text(".state") == "Ready" and infer(server, "spare") in (200, 400)
    page.click(".controls >> text=Unload")
    page.click("text=Unload it now")
    page.wait_for(".state", "Not loaded")
    page.click(".controls >> text=Load")
    page.wait_for(".state", "Ready")
    page.click(".controls >> text=Reload")
    page.wait("document.querySelector('#said').textContent === 'spare: load done.'")


@tiers.peers
def test_disabled_and_failed_loads_show_their_reason(server, page, repository, serve):
    open_page(page, server, "#/models/wrong")
    page.click(".controls >> text=Load")
    page.wait_for(".told.bad", "The load failed")
    repository.add("identity", "identity", identity_config())
    open_page(page, serve(repository.path), "#/models/identity")
    assert "--model-control-mode=explicit" in page.text(".told") and not page.evaluate("document.querySelector('.controls').offsetHeight")


@tiers.peers
@pytest.mark.parametrize("colors", ["light", "dark"])
def test_the_page_is_accessible_in_both_colour_schemes(server, page, colors):
    page.emulate(colors, "reduce")
    infer(server, "failing")
    for hash in PAGES:
        open_page(page, server, hash)
        assert page.violations() == [], hash
    page.goto(f"http://{server.http}/docs")
    page.wait_for(".route")
    page.click('.route summary >> text="/v2/models/identity/infer"')
    assert page.violations() == []


@tiers.peers
def test_a_phone_needs_no_sideways_scrolling(server, page):
    page.resize(360, 740)
    for hash in PAGES:
        open_page(page, server, hash)
        assert page.overflow() <= 0, hash
    page.goto(f"http://{server.http}/docs")
    page.wait_for(".route")
    page.click('.route summary >> text="/v2/models/identity/infer"')
    assert page.overflow() <= 0


@tiers.peers
def test_a_phone_shows_no_empty_cells(server, page):
    """Every row of figures is filled, and no cell of a table is empty."""
    infer(server, "failing")
    page.resize(360, 740)
    holes = """(() => {
        const boxes = [...document.querySelectorAll('.stats')].flatMap((stats) => {
            const cells = [...stats.children].map((cell) => cell.getBoundingClientRect());
            return cells.filter((cell) => !cells.some((next) => next.top === cell.top && next.left > cell.left))
                .filter((last) => stats.getBoundingClientRect().right - last.right > 3).length;
        });
        const cells = [...document.querySelectorAll('main td')].filter((cell) => cell.offsetParent && !cell.innerText.trim() && !cell.querySelector('svg'));
        return boxes.reduce((sum, count) => sum + count, 0) + cells.length;
    })()"""
    for hash in PAGES:
        open_page(page, server, hash)
        page.wait(f"{holes} === 0")


@tiers.peers
def test_the_server_page_has_ports_repositories_options_and_cpu(server, page):
    open_page(page, server, "#/server")
    page.wait_for("main", server.http.rsplit(":", 1)[1])
    shown = page.text("main")
    for told in ("Ports", "Repositories", str(server.repository), "Runtimes", "Options", "model_control_mode", "CPU of the machine"):
        assert told in shown, told
    assert re.search(r"Load\s+[\d.]+ % of the capacity of all instances", shown), shown


@tiers.peers
def test_a_model_shows_the_file_of_its_backend(page, repository, serve, tmp_path_factory):
    code = tmp_path_factory.mktemp("backends") / "mine/model.py"
    code.parent.mkdir()
    code.write_text("class TritonPythonModel:\n    def execute(self, requests):\n        return []\n")
    repository.add("own", "mine", identity_config())
    repository.add("identity", "identity", identity_config())
    server = serve(repository.path, f"--backend-directory={code.parent.parent}")
    open_page(page, server, "#/models/own")
    page.wait_for(".head + .faint", f"backend mine ({code})")
    open_page(page, server, "#/models/identity")
    assert "backend identity ·" in page.text(".head + .faint")


@tiers.peers
def test_values_of_an_unreachable_server_are_grey(page, repository, serve):
    repository.add("identity", "identity", identity_config())
    first = serve(repository.path)
    open_page(page, first)
    page.wait_for(ROWS)
    colours = f"[...document.querySelectorAll('{ROWS} .state, {ROWS} a, {ROWS} td')].map((node) => getComputedStyle(node).color)"
    assert len(set(page.evaluate(colours))) > 1
    first.stop()
    page.wait_for("#banner", "No connection")
    grey = page.evaluate("getComputedStyle(document.querySelector('.stat dt')).color")
    assert set(page.evaluate(colours)) == {grey}
    assert page.violations() == []


@tiers.peers
def test_general_routes_come_first(server, page):
    page.goto(f"http://{server.http}/docs")
    page.wait_for(".route")
    titles = page.texts("main h2")
    of_models = [title.startswith("Model ") for title in titles]
    assert any(of_models) and of_models == sorted(of_models), titles


@tiers.peers
def test_the_keyboard_reaches_everything(server, page):
    open_page(page, server)
    focused = "document.activeElement.textContent.trim()"
    seen = []
    for _ in range(8):
        page.press_key("Tab")
        seen.append(page.evaluate(focused))
    assert seen[:7] == ["Skip to the content", "Galatea", "Models", "Failed requests", "Server", "API", "Auto"], seen
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") != "none"
    page.evaluate("document.querySelector('input[type=search]').focus()")
    page.type("ident")
    page.wait(f"document.querySelectorAll('{ROWS}').length === 1")
    page.evaluate(f"document.querySelector('{ROWS} a').focus()")
    page.press_key("Enter")
    page.wait("document.querySelector('h1').textContent === 'identity'")


@tiers.peers
def test_the_colour_scheme_is_chosen_and_kept(server, page):
    open_page(page, server)
    page.click("#theme")
    page.click("#theme")
    dark = page.evaluate("getComputedStyle(document.body).backgroundColor")
    open_page(page, server)
    assert page.text("#theme") == "Dark" and page.evaluate("getComputedStyle(document.body).backgroundColor") == dark == "rgb(19, 22, 27)"
    page.click("#theme")
    assert page.text("#theme") == "Auto"


@tiers.peers
def test_routes_show_a_command(server, page):
    page.goto(f"http://{server.http}/docs")
    page.wait_for(".route")
    page.fill("input[type=search]", "identity/infer")
    page.click(".route:not([hidden]) summary")
    page.wait_for(".route[open] pre")
    shown = page.text(".route[open]")
    assert 'name: "INPUT0"' in shown and f"curl -s -X POST 'http://{server.http}/v2/models/identity/infer'" in shown


@tiers.peers
def test_a_restarted_server_is_found_again(page, repository, serve):
    repository.add("identity", "identity", identity_config())
    [port] = servers.free_ports(1)
    first = serve(repository.path, f"--http-port={port}")
    open_page(page, first)
    first.stop()
    page.wait_for("#banner", "No connection")
    assert page.text("#live-text") == "Not connected"
    serve(repository.path, f"--http-port={port}")
    page.click("text=Try now")
    page.wait("document.querySelector('#live').dataset.kind === 'live' && document.querySelector('#banner').hidden")


@tiers.peers
def test_the_header_of_a_restricted_server_is_asked_for(page, repository, serve):
    repository.add("identity", "identity", identity_config())
    server = serve(repository.path, "--http-restricted-api=model-repository,metadata:x-admin=sesame")
    page.goto(f"http://{server.http}/")
    page.wait_for("#banner", "it requires the header x-admin")
    page.fill("#header-value", "wrong")
    page.press_key("Enter")
    page.wait_for("#banner", "does not accept this value")
    page.fill("#header-value", "sesame")
    page.press_key("Enter")
    page.wait_for(ROWS)


@tiers.peers
def test_without_models_the_page_says_how_to_add_one(page, repository, serve):
    repository.path.mkdir(exist_ok=True)
    open_page(page, serve(repository.path, "--model-control-mode=explicit"))
    page.wait_for(".empty", "There is no model yet")
    assert "v2/repository/models/my_model/load" in page.text(".empty")


@tiers.peers
def test_two_thousand_models_stay_usable(page, repository, serve):
    for number in range(2000):
        repository.add(f"model_{number:04}", "identity", identity_config())
    server = serve(repository.path, "--model-control-mode=explicit", "--load-model=model_0007")
    open_page(page, server)
    assert page.count(ROWS) == 50 and page.text(".tools [role=status]") == "50 of 2,000 versions"
    took = page.evaluate(
        "(() => { const search = document.querySelector('input[type=search]'); search.value = 'model_19';"
        " const began = performance.now(); search.dispatchEvent(new Event('input')); return performance.now() - began; })()"
    )
    assert page.text(".tools [role=status]") == "50 of 100 versions" and took < 500
    page.click("text=Show 50 more")
    assert page.count(ROWS) == 100
    page.fill("input[type=search]", "")
    page.click("[data-filter=ready]")
    page.wait(f"document.querySelectorAll('{ROWS}').length === 1")
    assert page.text(f"{ROWS} a") == "model_0007"


@tiers.peers
def test_the_console_works_behind_a_proxy_prefix(server, page):
    """The browser requests paths below a prefix, which a proxy removes."""
    within, asked = "**/behind/**", []
    page.tab.route(within, lambda route: route.continue_(url=route.request.url.replace("/behind/", "/", 1)))

    def listen(request):
        asked.append(request.url)

    page.tab.on("request", listen)
    try:
        open_page(page, server, "behind/#/models/identity/try")
        page.wait_for(".try-send")
        page.click(".try-send")
        page.wait("/after/.test(document.querySelector('.try-status').textContent)")
        page.click("[data-page=docs]")
        page.wait_for("details")
        page.click("[data-page=models]")
        page.wait(f"document.querySelector('{ROWS}')")
    finally:
        page.tab.remove_listener("request", listen)
        page.tab.unroute(within)
    outside = [url for url in asked if url.startswith("http") and "/behind/" not in url]
    assert len(asked) > 20 and outside == []
