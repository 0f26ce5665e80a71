"""What watches a server: the Grafana board and the alerts, each expression asked of a real Prometheus that reads real servers;
the compose file's wiring of both; and the OpenTelemetry Collector's configuration beside real logs."""

import datetime
import json
import re
import subprocess
import threading
from pathlib import Path

import yaml

import clients
import repositories
import servers
import tiers
from deploying import CHECKS, DEPLOY, PROMTOOL, ROOT, Prometheus, output
from repositories import add_sub_config, identity_config
from waiting import eventually

BOARD = json.loads((DEPLOY / "grafana/galatea.json").read_text())
PANELS = [panel for panel in BOARD["panels"] if panel["type"] != "row"]
ALERTS = [rule for group in yaml.safe_load((DEPLOY / "prometheus/alerts.yaml").read_text())["groups"] for rule in group["rules"]]
RUNBOOKS = ROOT / "docs/alerts.md"
# Panels that are empty here: there is no GPU.
WITHOUT_DATA = {"GPU utilization", "GPU memory", "GPU power"}
# Triton 2.51 does not have it yet.
NOT_OF_TRITON = {"Time to load"}
METRIC = re.compile(r"\b((?:nv|galatea)_\w+)")


def expressions(panel):
    return [target["expr"] for target in panel["targets"]]


def asked(expression, instance=".*", model=".*"):
    """An expression as Grafana sends it."""
    for variable, value in {"$instance": instance, "$model": model, "$__rate_interval": "10s"}.items():
        expression = expression.replace(variable, value)
    assert "$" not in expression, expression
    return expression


# --- the files -----------------------------------------------------------------------------------------------------


def documented():
    return set(re.findall(r"^\| `(\w+)` \|", (ROOT / "docs/metrics.md").read_text(), re.M))


def test_every_used_metric_is_documented():
    wanted = [expression for panel in PANELS for expression in expressions(panel)] + [rule["expr"] for rule in ALERTS]
    named = {re.sub(r"_bucket$", "", name) for expression in wanted for name in METRIC.findall(expression)}
    assert len(named) > 30 and named <= documented(), named - documented()


def check_board(board, folder):
    """What Grafana does not know of a board."""
    (folder / "board.json").write_text(json.dumps(board))
    script = Path(__file__).parent / "deploy_schemas.py"
    done = subprocess.run([CHECKS / "bin/python", script, "board", folder / "board.json"], text=True, capture_output=True)
    assert done.stderr == ""
    return done.stdout.split()


@tiers.peers
def test_grafana_accepts_every_field_of_the_dashboard(tmp_path):
    assert check_board(BOARD, tmp_path) == []
    wrong = json.loads(json.dumps(BOARD))
    graph = next(panel for panel in wrong["panels"] if panel["type"] == "timeseries")
    graph["options"]["legend"]["place"] = "bottom"
    graph["fieldConfig"]["defaults"]["units"] = "s"
    (first, second) = check_board(wrong, tmp_path)
    assert first.endswith(".fieldConfig.defaults.units") and second.endswith(".options.legend.place")


def test_panels_do_not_overlap_and_are_complete():
    places, numbers = set(), []
    for panel in BOARD["panels"]:
        at = panel["gridPos"]
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert at["x"] + at["w"] <= 24 and not cells & places, panel["title"]
        places |= cells
        numbers.append(panel["id"])
    assert len(numbers) == len(set(numbers))
    for panel in PANELS:
        assert panel["title"] and panel["fieldConfig"]["defaults"].get("unit") or panel["type"] == "heatmap", panel
        sources = [panel["datasource"], *(target["datasource"] for target in panel["targets"])]
        assert all(source == {"type": "prometheus", "uid": "${datasource}"} for source in sources)
    titles = [panel["title"] for panel in PANELS]
    assert len(titles) == len(set(titles)) and WITHOUT_DATA < set(titles)
    assert [variable["name"] for variable in BOARD["templating"]["list"]] == ["datasource", "instance", "model"]


def test_compose_provides_dashboard_and_alerts():
    services = yaml.safe_load((ROOT / "compose.yaml").read_text())["services"]

    def mounted(service):
        """{place in the container: file of the checkout}"""
        pairs = (volume.split(":")[:2] for volume in services[service]["volumes"])
        return {place: ROOT / source for source, place in pairs if source.startswith(".")}

    grafana, prometheus = mounted("grafana"), mounted("prometheus")
    assert all(file.is_file() for file in [*grafana.values(), *prometheus.values()])
    (folder,) = (place for place in grafana if place.startswith("/etc/grafana/provisioning/dashboards/"))
    (provider,) = yaml.safe_load(grafana[folder].read_text())["providers"]
    shown = [file for place, file in grafana.items() if place.startswith(provider["options"]["path"] + "/")]
    assert shown == [DEPLOY / "grafana/galatea.json"]
    configuration = yaml.safe_load(prometheus["/etc/prometheus/prometheus.yml"].read_text())
    assert [prometheus[place] for place in configuration["rule_files"]] == [DEPLOY / "prometheus/alerts.yaml"]
    assert re.fullmatch(re.search(r'job=~"(.*?)"', ALERTS[0]["expr"])[1], configuration["scrape_configs"][0]["job_name"])
    assert "--metrics-config=histogram_latencies=true" in services["triton-server"]["command"], "the board has quantiles"


@tiers.peers
def test_alerts_are_valid_and_fire_when_expected():
    assert f"{len(ALERTS)} rules found" in output(PROMTOOL, "check", "rules", DEPLOY / "prometheus/alerts.yaml")
    file = DEPLOY / "prometheus/alerts.test.yaml"
    assert "SUCCESS" in output(PROMTOOL, "test", "rules", file)
    fired, quiet = set(), set()
    for case in (case for test in yaml.safe_load(file.read_text())["tests"] for case in test["alert_rule_test"]):
        (fired if case.get("exp_alerts") else quiet).add(case["alertname"])
    assert fired == quiet == {rule["alert"] for rule in ALERTS}, "each alert is seen to fire and not to"


@tiers.peers
def test_promtool_detects_a_wrong_alert(tmp_path):
    (tmp_path / "alerts.yaml").write_text((DEPLOY / "prometheus/alerts.yaml").read_text().replace("> 1.5", "> 15"))
    (tmp_path / "test.yaml").write_text((DEPLOY / "prometheus/alerts.test.yaml").read_text())
    done = subprocess.run([PROMTOOL, "test", "rules", tmp_path / "test.yaml"], text=True, capture_output=True)
    assert done.returncode != 0 and "GalateaOverloaded" in done.stdout + done.stderr


def test_every_alert_has_its_runbook():
    headings = {title.lower() for title in re.findall(r"^## (\w+)$", RUNBOOKS.read_text(), re.M)}
    for rule in ALERTS:
        assert rule["annotations"]["runbook"] == f"docs/alerts.md#{rule['alert'].lower()}"
    assert headings == {rule["alert"].lower() for rule in ALERTS}


# --- real servers --------------------------------------------------------------------------------------------------


class Traffic:
    """Requests of all kinds, good and bad ones, until the block ends."""

    def __init__(self, *addresses):
        self.ended = threading.Event()
        self.threads = [threading.Thread(target=self.send, args=(address,)) for address in addresses for _ in range(2)]

    def send(self, address):
        while not self.ended.is_set():
            clients.ask(address, "POST", "/v2/models/simple/infer", clients.pair_json())
            clients.ask(address, "POST", "/v2/models/failing/infer", {"inputs": [{"name": "INPUT0", "shape": [1], "datatype": "FP32", "data": [1]}]})
            self.ended.wait(0.02)

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.ended.set()
        for thread in self.threads:
            thread.join()


def write_models(folder, target):
    repositories.write_model(folder, "simple", target, "add_sub", add_sub_config())
    fails = 'parameters { key: "fail" value { string_value: "execute" } }\n'
    repositories.write_model(folder, "failing", target, "failing", identity_config(more=fails))
    return folder


def is_triton_s(panel):
    return all(name.startswith("nv_") for expression in expressions(panel) for name in METRIC.findall(expression))


@tiers.peers
def test_each_panel_has_data_of_a_running_server(tmp_path):
    models = write_models(tmp_path / "models", "galatea")
    flags = ("--metrics-config=histogram_latencies=true", f"--access-log={tmp_path}/access.log")
    with servers.galatea(models, *flags) as server, Traffic(server.http):
        with Prometheus(tmp_path, {"galatea": server.metrics}, DEPLOY / "prometheus/alerts.yaml") as prometheus:
            for panel in PANELS:
                for expression in map(asked, expressions(panel)):
                    if panel["title"] in WITHOUT_DATA:
                        assert prometheus.query(expression) == [], f"{panel['title']} has data: it is no exception any more"
                    else:
                        prometheus.until(lambda: prometheus.query(expression), f"data of {panel['title']}: {expression}")
            # With the variables set, as somebody would who looks for one model.
            chosen = next(panel for panel in PANELS if panel["title"] == "Requests failed, by model and reason")
            (expression,) = expressions(chosen)
            failing = asked(expression, server.metrics, "failing")
            prometheus.until(lambda: max(value for _, value in prometheus.query(failing)) > 0, "failures")
            assert {labels["model"] for labels, _ in prometheus.query(failing)} == {"failing"}
            for variable in BOARD["templating"]["list"][1:]:
                metric, label = re.fullmatch(r"label_values\((.*), (\w+)\)", variable["query"]["query"]).groups()
                assert {labels[label] for labels, _ in prometheus.query(asked(metric))}, variable["name"]
            prometheus.until(lambda: all(rule["health"] != "unknown" for rule in prometheus.rules()), "all rules to be evaluated")
            assert {rule["health"] for rule in prometheus.rules()} == {"ok"}
            failing = prometheus.until(lambda: next((r for r in prometheus.rules() if r["name"] == "GalateaRequestsFail" and r["alerts"]), None), "an alert")
            assert [alert["labels"]["model"] for alert in failing["alerts"]] == ["failing"] and failing["state"] == "pending"


@tiers.peers
def test_panels_of_tritons_metrics_work_with_triton(tmp_path):
    panels = [panel for panel in PANELS if is_triton_s(panel) and panel["title"] not in WITHOUT_DATA | NOT_OF_TRITON]
    assert len(panels) >= 10
    with servers.triton(write_models(tmp_path / "models", "triton")) as server, Traffic(server.http):
        with Prometheus(tmp_path, {"triton": server.metrics}) as prometheus:
            for panel in panels:
                for expression in map(asked, expressions(panel)):
                    prometheus.until(lambda: prometheus.query(expression), f"data of {panel['title']}: {expression}")


# --- the collector -------------------------------------------------------------------------------------------------


COLLECTOR = yaml.safe_load((DEPLOY / "otel-collector/config.yaml").read_text())
# What a component takes, as far as it is used here: facts of the collector's documentation.
OPERATORS = {
    "json_parser": {"type", "timestamp", "severity"},
    "trace_parser": {"type", "if", "trace_id", "span_id"},
    "move": {"type", "from", "to"},
    "add": {"type", "field", "value"},
}


def test_every_part_of_the_collector_pipelines_exists():
    used = {part: set() for part in ("receivers", "processors", "exporters")}
    for pipeline in COLLECTOR["service"]["pipelines"].values():
        for part in used:
            used[part] |= set(pipeline[part])
    assert used == {part: set(COLLECTOR[part]) for part in used}
    assert COLLECTOR["service"]["pipelines"]["logs"]["processors"][0] == "memory_limiter"
    for name, receiver in COLLECTOR["receivers"].items():
        for operator in receiver.get("operators", []):
            assert set(operator) <= OPERATORS[operator["type"]], (name, operator)


@tiers.peers
def test_the_collectors_prometheus_part_is_valid(tmp_path):
    configuration = COLLECTOR["receivers"]["prometheus"]["config"]
    text = re.sub(r"\$\{env:\w+:-([^}]*)\}", r"\1", json.dumps(configuration))
    (tmp_path / "prometheus.yaml").write_text(text)
    assert "SUCCESS" in output(PROMTOOL, "check", "config", tmp_path / "prometheus.yaml")
    assert configuration["scrape_configs"][0]["static_configs"][0]["targets"] == ["${env:GALATEA_METRICS:-localhost:8002}"]


def listening(log):
    """The HTTP address that a server names in its log file."""
    found = lambda: re.search(r"Started HTTPService at ([0-9.:]+)", log.read_text() if log.exists() else "")  # noqa: E731
    return eventually("the server has started", found, servers.START_LIMIT)[1]


def attribute(path):
    return path.removeprefix("attributes.")


def test_the_collector_finds_its_fields_in_real_logs(tmp_path):
    """The test starts the server with the command line from the file and sends a client's trace."""
    models = write_models(tmp_path / "models", "galatea")
    head = (DEPLOY / "otel-collector/config.yaml").read_text().split("receivers:")[0]
    (command,) = re.findall(r"^#   galatea serve /models (.*)$", head, re.M)
    flags = command.replace("/var/log/galatea", str(tmp_path)).split()
    # The collector takes spans where the server sends them.
    assert "--trace-config=mode=opentelemetry" in flags and not any("opentelemetry,url" in flag for flag in flags)
    assert COLLECTOR["receivers"]["otlp"]["protocols"] == {"http": {"endpoint": "${env:GALATEA_SPANS:-localhost:4318}"}}
    with servers.galatea(models, *flags, wait=False):
        http = listening(tmp_path / "server.log")
        headers = {"traceparent": f"00-{'a' * 32}-{'b' * 16}-01"}
        assert clients.ask(http, "POST", "/v2/models/simple/infer", clients.pair_json(), headers)[0] == 200
        assert clients.ask(http, "POST", "/v2/models/none/infer", clients.pair_json())[0] == 404
    logs = {name: [json.loads(line) for line in (tmp_path / f"{name}.log").read_text().splitlines()] for name in ("access", "server")}
    for name, lines in logs.items():
        receiver = COLLECTOR["receivers"][f"filelog/{name}"]
        assert receiver["include"] == [f"/var/log/galatea/{name}.log"] and lines
        for operator in receiver["operators"]:
            for part in ("timestamp", "severity", "trace_id", "span_id"):
                if part in operator:
                    assert all(attribute(operator[part]["parse_from"]) in line for line in lines), (name, part)
            if operator["type"] == "move":
                assert all(attribute(operator["from"]) in line for line in lines)
        # The layout of the time, in the words of Python.
        assert receiver["operators"][0]["timestamp"]["layout"] == "2006-01-02T15:04:05.999999Z07:00"
        assert all(datetime.datetime.strptime(line["time"], "%Y-%m-%dT%H:%M:%S.%f%z") for line in lines)
    mapping = COLLECTOR["receivers"]["filelog/server"]["operators"][0]["severity"]["mapping"]
    assert {line["level"] for line in logs["server"]} <= set(mapping.values())
    traced, other = logs["access"]
    assert re.fullmatch("a{32}", traced["trace_id"]) and re.fullmatch("[0-9a-f]{16}", traced["span_id"])
    assert other["trace_id"] is None, "what the condition of the trace parser is for"
