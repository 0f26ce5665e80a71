"""What the load tool's page shows of runs, in a browser: names, numbers, verdicts, charts; and the functions that draw it."""

import copy
import json
import re

import pytest

import browser
import perf_tool
import servers

pytestmark = pytest.mark.skipif(perf_tool.STAND_IN, reason="the real tool has no page")

SUMMARIES = servers.ROOT / "crates/perf/report/testdata/summaries"
DATA = re.compile(r'(<script id="runs-data" type="application/json">).*?(</script>)', re.DOTALL)
HOSTILE = "</script><img src=x onerror=\"alert('1')\">&amp;<![CDATA[\x00\u202e]]>"
SHOWN = HOSTILE.replace("\x00", "\ufffd").replace("\u202e", "\ufffd")
PERCENTILES = {"50": 500.0, "90": 700.0, "95": 800.0, "99": 1000.0}


@pytest.fixture(scope="module")
def frame(perf_servers, tmp_path_factory):
    """A page as the load tool writes it."""
    server = perf_servers.get("galatea")
    folder = tmp_path_factory.mktemp("page")
    args = ["-m", "simple", "-u", server.http, "--request-count", "20", "-p", "150", "--html", "page.html"]
    done = perf_tool.run(perf_tool.OURS, args, folder)
    assert done.code == 0, done.err
    return done.path("page.html").read_text()


@pytest.fixture(scope="module")
def chromium():
    with browser.open_browser() as running:
        yield running


@pytest.fixture
def page(chromium, frame, tmp_path):
    """Opens a page of some runs. Every test ends with a page that complains about nothing."""

    def show(*runs):
        data = json.dumps(runs).replace("<", "\\u003c")
        path = tmp_path / "page.html"
        path.write_text(DATA.sub(lambda found: found[1] + data + found[2], frame))
        chromium.goto(path.as_uri())
        return chromium

    yield show
    assert chromium.take_errors() == []


@pytest.fixture
def value(chromium, frame):
    """The value of an expression in which the functions of the page's script are known."""
    script = frame.split('<script type="module">')[1].split("</script>")[0]
    functions = script[: script.index("const runs = JSON.parse")]
    return lambda expression: chromium.evaluate(f"(() => {{ {functions}\nreturn {expression}; }})()")


def point(load, throughput, us=600.0, mode="concurrency", **more):
    """A point whose times are in proportion to its latency."""
    latency = {"avg_us": us, "std_us": us / 10, "min_us": us / 2, "max_us": us * 3}
    latency["percentiles_us"] = {rank: us * part / 600 for rank, part in PERCENTILES.items()}
    windows = [{"throughput": throughput * part, "latency_us": us} for part in (0.98, 1.0, 1.02)]
    server = {"model": "simple", "version": "", "success_count": 10, "inference_count": 10, "execution_count": 5, "request_us": us / 2, "composing": []}
    parts = {"queue_us": us / 8, "compute_input_us": 0.0, "compute_infer_us": us / 4, "compute_output_us": 0.0, "cache_hit_us": 0.0, "cache_miss_us": 0.0}
    return {
        "mode": mode, "value": load, "request_count": 1000, "duration_s": 0.45, "throughput": throughput,
        "throughput_ci95": [throughput * 0.98, throughput * 1.02], "latency": latency, "latency_ci95": [us * 0.98, us * 1.02],
        "delayed_request_count": 0, "client": {"send_us": us / 20, "response_wait_us": us * 0.9, "receive_us": us / 20},
        "server": {**server, **parts}, "windows": windows, "overhead_percent": 3.0, "tool_cpu_us_per_request": 4.2, **more,
    }


def run(label, *points, **more):
    given = {
        "format": "galatea-perf/1", "command": "galatea perf -m simple", "label": label, "started_at": 1_785_160_980.0, "model": "simple",
        "model_version": "", "server_name": "triton", "server_version": "2.74.0", "protocol": "http", "batch_size": 1, "percentile": 95,
        "points": list(points), "warnings": [],
    }
    return given | more


def unstable_run():
    trials = [{"throughput": value, "latency_us": 900.0, "merged": False} for value in (9000.0, 7000.0)]
    trials += [{"throughput": 8000.0, "merged": True}, *({"throughput": value, "latency_us": 950.0, "merged": True} for value in (7500.0, 6200.0))]
    why = {"reason": "the last 3 windows differ by 42% in throughput", "allowed_percent": 10.0, "throughput_percent": 42.0, "trials": trials}
    return run("galatea 0.1.0", point(1, 1786.0), point(8, 9536.0, 900.0, unstable=True, instability=why))


def ensemble_run():
    leaf = {**point(1, 1.0)["server"], "request_us": 100.0}
    steps = [{**leaf, "model": "tokenizer"}, {**leaf, "model": "embed_text", "version": "2", "composing": [{**leaf, "model": "rank_candidates"}]}]
    return run("ensemble", point(1, 900.0, server={**leaf, "model": "pipeline", "composing": steps}))


def hostile_run():
    names = dict.fromkeys(["model", "model_version", "protocol", "server_name", "command"], HOSTILE)
    return run(HOSTILE, point(2, 100.0, mode=HOSTILE), **names, warnings=[HOSTILE, "second"])


def odd_run():
    """Values that are no numbers come as null, and others are out of all bounds."""
    one = point(4, 1e18, 1e-9, throughput_ci95=[-5.0, 1e18], latency_ci95=[None, 3.0])
    two = point(1e12, 1e-9, 1e17)
    two["latency"]["percentiles_us"] |= {"99": None, "95": -1.0, "": 3.0}
    return run("odd", one, two, point(None, 5.0), {**point(8, 5.0), "throughput": None}, started_at=None)


def measured(name):
    return json.loads((SUMMARIES / f"{name}.json").read_text())


def many_runs():
    return [run("same", *(point(2.0**load, 1000.0 * load + at, 600.0 + 40 * at * load) for load in range(1, 6))) for at in range(8)]


RUNS = {
    "none": [], "empty": [run("empty")], "one": [run("one", point(8, 9000.0))], "many": many_runs(), "unstable": [unstable_run()],
    "ensemble": [ensemble_run(), ensemble_run()], "hostile": [hostile_run(), hostile_run()], "odd": [odd_run()],
    "measured": [measured("again"), measured("stable")], "slow": [measured("slow"), measured("stable")],
}
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
    for (const [limit, names] of [[width, ['x', 'x1', 'x2', 'cx']], [height, ['y', 'y1', 'y2', 'cy']]]) {
      for (const name of names) for (const node of chart.querySelectorAll(`[${name}]`)) {
        const at = Number(node.getAttribute(name));
        if (!(at >= 0 && at <= limit)) faults.push(`${name}=${at} of ${limit}`);
      }
    }
  }
  const [wide, narrow] = ['wide', 'narrow'].map((one) => document.querySelectorAll(`svg.chart.for-${one}`).length);
  if (wide !== narrow) faults.push('a chart for one kind of screen alone');
  return faults;
})()"""


@pytest.mark.parametrize("name", RUNS)
def test_every_page_is_complete_and_loads_nothing_external(name, page):
    shown = page(*RUNS[name])
    assert shown.evaluate(FAULTS) == []
    assert shown.count("svg.chart") >= (0 if name in ("none", "empty") else 6)
    assert shown.count("h1") == 1


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", ["one", "many", "unstable", "ensemble", "measured"])
def test_the_page_is_accessible_by_keyboard_and_screen_reader(name, scheme, page, chromium):
    chromium.emulate(scheme)
    shown = page(*RUNS[name])
    shown.evaluate("document.querySelectorAll('details').forEach((box) => { box.open = true; })")
    assert shown.violations() == []


def test_every_name_is_shown_unchanged(page):
    shown = page(*RUNS["hostile"])
    text = shown.evaluate("document.querySelector('main').textContent")
    assert text.count(SHOWN) >= 8 and shown.evaluate("document.title") == f"{SHOWN} – load test"
    assert f"{SHOWN} (1)" in text and f"{SHOWN} (2)" in text, "equal labels are numbered"


def text_of(page):
    """All text, a line for each element that has some."""
    walk = "document.createTreeWalker(document.querySelector('main'), NodeFilter.SHOW_TEXT)"
    return page.evaluate(f"(() => {{ const walk = {walk}, lines = []; while (walk.nextNode()) lines.push(walk.currentNode.data); return lines.join('\\n'); }})()")


def test_numbers_equal_those_of_the_runs(page):
    ours = point(4, 12400.0, throughput_ci95=[12300.0, 12500.0])
    theirs = point(4, 10000.0, throughput_ci95=[9900.0, 10100.0])
    ours["latency"]["percentiles_us"]["99"] = 820.0
    shown = page(run("ours 1", ours), run("theirs 2", theirs, point(8, 5000.0)))
    text = text_of(shown)
    for wanted in [
        "12,400",
        "Throughput: ×1.24 at concurrency 4. The 95 % confidence intervals do not overlap: 12,300 – 12,500 inferences/s against 9,900 – 10,100 inferences/s.",
        "×1.24 the best of theirs 2", "−18.0 %", "95 % CI 12,300 – 12,500", "2026-07-27 14:03 UTC", "triton 2.74.0",
    ]:
        assert wanted in text, wanted
    assert shown.texts("td.better")[0].startswith("×1.24")


def test_runs_without_a_common_load_are_not_compared_load_by_load(page):
    text = text_of(page(run("ours", point(4, 900.0)), run("theirs", point(8, 800.0))))
    assert "no load in common" in text and "best of each" in text


def test_a_rate_is_not_compared_with_a_concurrency(page):
    text = text_of(page(run("rate", point(4, 900.0, mode="request_rate")), run("closed loop", point(4, 800.0))))
    assert "no load in common" in text and "best of each" not in text and "the best of" not in text


def test_nested_steps_have_bars_and_rows(page):
    shown = page(*RUNS["ensemble"])
    for step in ("embed_text", "tokenizer", "rank_candidates"):
        assert step in shown.evaluate("[...document.querySelectorAll('.bar-label.step')].map((node) => node.textContent)")
        assert any(text.strip() == step for text in shown.evaluate("[...document.querySelectorAll('tr.step td')].map((node) => node.textContent)"))


def test_scheduled_latencies_have_their_own_lines(page):
    late = {**point(1, 1.0)["latency"], "avg_us": 900.0}
    shown = page(run("rate", *(point(load, load, mode="request_rate", scheduled_latency=late) for load in (100, 200))))
    assert "p99 from the schedule" in text_of(shown) and shown.count("path[stroke-dasharray='5 4']") > 0
    assert "schedule" in shown.evaluate("[...document.querySelectorAll('#latency td')].map((node) => node.textContent)")


def test_an_unstable_point_is_marked_and_never_the_best(page):
    assert "unstable" not in text_of(page(run("galatea", point(1, 1000.0), point(8, 5000.0))))
    text = text_of(page(run("galatea", point(1, 1000.0), point(8, 5000.0, unstable=True))))
    assert "8, unstable" in text and "1, unstable" not in text and "Best stable throughput" in text


def test_runs_with_overlapping_intervals_have_no_headline(page):
    ours = point(4, 6000.0, throughput_ci95=[5000.0, 7000.0], latency_ci95=[800.0, 1200.0])
    theirs = point(4, 4800.0, throughput_ci95=[4000.0, 6000.0], latency_ci95=[900.0, 1500.0])
    shown = page(run("ours 1", ours), run("theirs 2", theirs))
    text = text_of(shown)
    for wanted in [
        "Throughput: no difference was shown. The 95 % confidence intervals overlap: 5,000 – 7,000 inferences/s against 4,000 – 6,000 inferences/s at concurrency 4.",
        "P95 latency: no difference was shown.",
        "no difference shown from the best of theirs 2, at concurrency 4 (95 % CI 4,000 – 6,000)",
    ]:
        assert wanted in text, wanted
    assert shown.count(".better, .worse") == 0 and shown.count(".even") > 0


def test_a_load_is_the_best_only_if_its_interval_is_separate(page):
    points = [point(1, 1000.0, 600.0), point(8, 5000.0, 900.0)]
    text = text_of(page(run("galatea", *points)))
    assert "Best throughput" in text and "Lowest latency\n" in text
    points[0] |= {"throughput_ci95": [100.0, 90000.0], "latency_ci95": [100.0, 90000.0]}
    text = text_of(page(run("galatea", *points)))
    assert "Highest throughput measured" in text and "Lowest latency measured" in text
    assert "no difference shown from concurrency 1 (95 % CI 100 – 90,000)" in text
    del points[0]["throughput_ci95"]
    assert "not every load has a confidence interval" in text_of(page(run("galatea", *points)))


def test_an_unstable_point_shows_every_window_and_the_reason(page):
    shown = page(unstable_run())
    text = text_of(shown)
    for wanted in ["Unstable because the last 3 windows differ by 42% in throughput", "Window 1: 9,000 inferences/s. ", "Window 5: 6,200 inferences/s, merged. ", "failed"]:
        assert wanted in text, wanted
    assert shown.evaluate("[...document.querySelectorAll('#unstable td')].filter((node) => node.textContent === 'merged').length") == 3


def test_a_higher_unstable_throughput_is_shown_beside_the_best_stable_one(page):
    one = unstable_run()
    figures = "[...document.querySelectorAll('dl.figures > div')].map((node) => node.textContent)"
    shown = page(one).evaluate(figures)
    assert shown[0].startswith("Best stable throughput1,786") and shown[1].startswith("Higher, but unstable9,536"), shown
    assert "its windows differ by 42 %, 10 % are allowed" in shown[1]
    for at in one["points"]:
        del at["throughput_ci95"]
    assert "Highest throughput measured" not in " ".join(page(one).evaluate(figures)), "missing intervals change nothing of it"
    lower = copy.deepcopy(one)
    lower["points"][1]["throughput"] = 900.0
    assert "Higher, but unstable" not in " ".join(page(lower).evaluate(figures)), "what is lower is no news"


def test_marks_have_tooltips_and_tables_are_printed(page):
    shown = page(*RUNS["one"])
    shown.tab.locator("#throughput .for-wide .mark .marker").first.hover()
    assert shown.text(".tip").startswith("one\nconcurrency 8\n9,000 inferences/s\np95 latency")
    shown = page(*RUNS["many"])
    assert shown.count("details:not([open])") > 0
    shown.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert shown.count("details:not([open])") == 0


# --- functions ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("expression, wanted", [
    ("[0, 0.00001, 0.0123, 1, 12.345, 999.5, 12345.6, 1e13, NaN, -1, null].map(number)", "0 1.00e-5 0.0123 1.00 12.3 1,000 12,346 1.00e13 – – –"),
    ("[0.5, 16, 2.25, 500, 1e20].map(short)", "0.5 16 2.25 500 –"),
    ("[0, 2500, 1.5e6, 2e9].map(tick)", "0 2,500 1.5_M 2_G"),
    ("[count(1234567), percent(12.34), percent(-1)]", "1,234,567 12.3_% –"),
    ("[0, 0.25, 812, 1200, 2.5e6, null].map(duration)", "0 250\xa0ns 812\xa0µs 1.20\xa0ms 2.50\xa0s –"),
    ("[durations([820, 1040]), interval([9.5, 1200]), tickDuration(1500)]", "0.820_–_1.04\xa0ms 9.50_–_1,200 1.5\xa0ms"),
    ("[0.82, 1.031, 12].map(change)", "−18.0_% +3.1_% +1,100_%"),
    ("[1.239, 0.012].map(times)", "×1.24 ×0.0120"),
    ("[unitOfTable([100, 2000, 3000]).write(100), capitalized('average'), capitalized('')]", "0.100 Average "),
    ("[951827696, 1735689599, NaN].map(date)", "2000-02-29_12:34_UTC 2024-12-31_23:59_UTC –"),
    ("[shortened('short', 12, 120), shortened('大', 12, 1)]", "short …"),
    ("[5, 4].map((most) => listed([1, 2, 3, 4, 5].slice(0, most), String))", "1;_2;_3;_and_at_2_more_loads 1;_2;_3;_and_at_one_more_load"),
    ("[evidenceOf([1, 2], [2, 3]), evidenceOf([1, 2], [2.1, 3]), evidenceOf([1, 2])]", "overlapping apart missing"),
    ("[[1.2, true, 'apart'], [1.2, false, 'apart'], [0.8, false, 'apart'], [0.8, false, 'overlapping'], [0.8, false, 'missing'], [1.001, true, 'apart']].map((given) => changeCell(...given).kind)",
     "better worse better even unjudged even"),
    ("[polyline([[1, 2], [3.04, 4.06]]), polyline([null, [1, 2], [3, 4], null, [5, 6]])]", "M1_2L3_4.1 M1_2L3_4M5_6"),
    ("[0.9, 1, 1.2, 2.1, 950].map(roundUp)", "1 1 2 5 1000"),
])
def test_values_are_formatted_for_people(expression, wanted, value):
    assert [str(one).replace(" ", "_") for one in value(expression)] == wanted.split(" ")


@pytest.mark.parametrize("expression", [
    "same(Scale.fromZero([930]).ticks(5), [0, 200, 400, 600, 800, 1000])",
    "same(Scale.fitting([1.5, 480], 20).ticks(7), [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000])",
    "same(Scale.fitting([1.5, 400000], 20).ticks(7), [1, 10, 100, 1e3, 1e4, 1e5])",
    "!Scale.fitting([1, 19], 20).isLog && Scale.fitting([1, 21], 20).isLog",
    "Scale.fitting([100, 104], 20).over(0, 100).position(100) < 25 && Scale.fitting([100, 104], 20).over(0, 100).position(104) > 75",
    "[[1, 2, 4, 8], [1, 10, 20, 30], [0, 1, 10]].map((loads) => Scale.ofLoads(loads).isLog).join() === 'true,false,false'",
    "[[], [0], [7], [0, 0], [3, 5]].every((loads) => loads.every((load) => inside(Scale.ofLoads(loads).over(0, 100).position(load), 0, 100)))",
    "Math.abs(Scale.fitting([1.1, 900], 20).over(0, 300).position(10) - 100) < 1e-9",
    "[[], [0], [1e-300], [1e18], [0, 1e18], [1e-9, 1e18]].flatMap((all) => [Scale.fromZero(all), Scale.fitting(all, 20)]).every((scale) => inside(scale.ticks(6).length, 1, 19) && [0, 1e-300, 1, 1e18, NaN, Infinity, -5].every((one) => inside(scale.over(10, 90).position(one), 10, 90)))",
    "same(apart([10, 12, 50], 13, 100), [10, 23, 50]) && same(apart([90, 95, 99], 13, 100), [74, 87, 100])",
    "((kept) => inside(kept.length, 9, 39) && kept.at(-1).label === '50' && kept.slice(1).every((one, at) => one.at - kept[at].at > 10))(thinnedTicks(axisAt('', Scale.fromZero(upTo(50)).over(0, 400), upTo(50), short)))",
    "new Set(upTo(12).map((at) => JSON.stringify({ ...lookOf(at - 1), kind: '' }))).size === 12",
    "same([0, 1, 2, 3, 4].map((rank) => rankedLook(rank, 5).kind), ['pct0', 'pct1', 'pct2', 'pct3', 'pct5'])",
    "((kept) => kept.length === 20 && kept[0][0] === 1 && kept[19][0] === 50)(thinnedGroups(upTo(50).map((at) => [at, at, at])))",
    "Math.abs(averageRatio([2, 0.5]) - 1) < 1e-12",
    "((parts) => us(parts, 'network') === 30 && sumOf(parts) === 100)(serverSegments({ request_us: 50, queue_us: 20, compute_infer_us: 50 }, 100))",
    "((parts) => us(parts, 'infer') === 70 && us(parts, 'network') === 50)(serverSegments(ensemble([step(30, 10), step(20, 20)], 10), 120))",
    "((parts) => us(parts, 'overlapping') === 100 && sumOf(parts) === 120)(serverSegments(ensemble([step(90, 1), step(80, 1)], 1), 120))",
])
def test_positions_and_sums_are_correct(expression, value):
    helpers = """
      const same = (a, b) => JSON.stringify(a) === JSON.stringify(b);
      const inside = (value, low, high) => value >= low && value <= high;
      const upTo = (last) => Array.from({ length: last }, (_, at) => at + 1);
      const us = (parts, wanted) => sumOf(parts.filter(({ part }) => part === wanted));
      const step = (us, count) => ({ request_us: us, compute_infer_us: us, success_count: count });
      const ensemble = (composing, count) => ({ request_us: 100, success_count: count, composing });
    """
    assert value(f"(() => {{ {helpers} return {expression}; }})()")


def test_a_headline_needs_separate_intervals_at_every_load(value):
    def sentence(*findings):
        measure = "{ name: 'Throughput', ratio: times, interval: (ends) => ends.join(' – ') }"
        given = [{"load": load, "ratio": (ours and sum(ours) / sum(theirs)) or 3.0, "intervals": [ours, theirs]} for load, ours, theirs in findings]
        return value(f"verdictOn({measure}, {json.dumps(given)}) ?? ''")

    faster, same, unknown = ("1", [19, 21], [9, 11]), ("8", [9, 12], [8, 12]), ("16", None, [1, 2])
    assert sentence(faster) == "Throughput: ×2.00 at 1. The 95 % confidence intervals do not overlap: 19 – 21 against 9 – 11."
    assert sentence(faster, ("2", [79, 81], [9, 11])).startswith("Throughput: ×4.00 on average over 2 equal loads")
    assert sentence(same) == "Throughput: no difference was shown. The 95 % confidence intervals overlap: 9 – 12 against 8 – 12 at 8."
    assert sentence(faster, ("4", [4, 6], [9, 11])) == "Throughput: ×2.00 at 1; ×0.50 at 4."
    overlap = "The 95 % confidence intervals overlap: 9 – 12 against 8 – 12 at 8."
    assert sentence(faster, same) == f"Throughput: ×2.00 at 1. Elsewhere no difference was shown. {overlap}"
    assert sentence(unknown).startswith("Throughput: not judged")
    assert sentence(faster, unknown) == "Throughput: ×2.00 at 1.", "no average over what is not known"
    assert sentence() == ""
