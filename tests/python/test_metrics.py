"""The metrics page from outside: what its figures say when something goes wrong, that they fit each other under load, and
that every line can be parsed."""

import concurrent.futures
import http.client
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
import tritonclient.grpc as grpcclient
from tritonclient.utils import InferenceServerException

import clients
import servers
import shared_flags
import tiers
from repositories import REPEAT_CONFIG, add_sub_config, identity_config, tensor, write_model
from test_python_queue import CONFIG as GATE_CONFIG
from test_python_queue import GATE, Gates
from waiting import LIMIT, eventually

# Files that share servers run in one process.
pytestmark = pytest.mark.xdist_group("observed")
ALL_ON = ("--metrics-config=histogram_latencies=true", "--metrics-config=summary_latencies=true")
SAMPLE = re.compile(r'(\w+)(?:\{((?:\w+="(?:[^"\\\n]|\\["\\n])*",?)+)\})? (-?[0-9.]+|Nan|[+-]Inf)')


@pytest.fixture
def observed(shared):
    """A server that shows all metrics it can."""
    flags, env = shared_flags.observed()
    return shared(*flags, env=env)


def page(server):
    return clients.ask(server.metrics, "GET", "/metrics")[2].decode()


def value(server, name, labels=""):
    return clients.metrics(server)[name, labels]


def post(server, model, body):
    return clients.ask(server.http, "POST", f"/v2/models/{model}/infer", body)[0]


def one_row():
    return {"inputs": [clients.tensor_json("INPUT0", np.ones(3, np.float32))]}


def families(text):
    """Name -> (type, samples), each family once and its samples together."""
    found, name = {}, None
    for line in text.splitlines():
        if line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            assert name not in found, f"{name} twice"
            found[name] = (kind, [])
        elif not line.startswith("# HELP "):
            sample = SAMPLE.fullmatch(line)
            assert sample, line
            assert sample[1].startswith(name), line
            found[name][1].append(sample)
    return found


def reference():
    """What the page of documentation says of each family: name -> (type, labels, when it is shown)."""
    text = (Path(__file__).resolve().parents[2] / "docs/metrics.md").read_text()
    found = {}
    for section in text.split("\n## ")[1:]:
        above, _, table = section.partition("\n| name | ")
        columns = ("name | " + table.split(" |\n")[0]).split(" | ")
        about = (above.split("\n") + [""])[2]
        kind, shared, when = re.fullmatch(r"(?:Type: (\w+)\.)? ?(?:Labels: (.*?)\.)? ?(?:Shown (.*)\.)?", about).groups("")
        for line in re.findall(r"^\| (`\w+` \| .*) \|$", table, re.M):
            row = dict(zip(columns, line.split(" | "), strict=True))
            labels = re.findall(r"`(\w+)`", shared + row.get("labels", "") + row.get("more labels", ""))
            found[row["name"].strip("`")] = (row.get("type", kind), set(labels), row.get("shown", when or "always"))
    return found


def test_the_reference_and_the_page_have_the_same_families(observed):
    """With all there is switched on, but for GPUs; types and labels too. The first test that has an environment built there."""
    server = observed
    server.place("simple", "add_sub", add_sub_config())
    server.place("repeat", "repeat", REPEAT_CONFIG)
    server.place("cached", "add_sub", add_sub_config(more="response_cache { enable: true }\n"))
    learned = 'dynamic_batching { }\nparameters { key: "batch_delay" value: { string_value: "auto" } }\n'
    server.place("learned", "add_sub", add_sub_config(more=learned))
    unbuildable = {"1/model.py": "", "requirements.txt": "no-such-package-as-this==1\n"}
    server.place("unbuildable", "python", identity_config(), load=False, files=unbuildable)
    documented = reference()
    environments = {name for name, (_, _, shown) in documented.items() if "environment" in shown}
    gpus = {name for name, (_, _, shown) in documented.items() if "GPU" in shown}
    # test_auth.py has a server with a policy.
    policies = {name for name, (_, _, shown) in documented.items() if "--auth-policy" in shown}
    # test_response_cache_redis.py has one with such a cache.
    caches = {name for name, (_, _, shown) in documented.items() if "redis" in shown}
    assert len(environments) == 3 and len(gpus) == 6 and policies == {"galatea_auth_failures_total"}
    # test_admission.py has one with that option.
    admission = {name for name, (_, _, shown) in documented.items() if "--admission" in shown}
    elsewhere = gpus | policies | caches | admission
    assert caches == {f"galatea_response_cache_{name}" for name in ("errors_total", "lost", "losses_total")}
    assert admission == {"galatea_admission_limit"}
    assert set(families(page(server))) == set(documented) - environments - elsewhere
    assert clients.ask(server.http, "POST", "/v2/repository/models/unbuildable/load", {})[0] >= 400
    assert value(server, "galatea_python_environment_builds_total", 'outcome="failure"') == 1
    assert value(server, "galatea_python_environment_builds_total", 'outcome="success"') == 0
    assert value(server, "galatea_python_environments") == value(server, "galatea_python_environments_size_bytes") == 0
    assert post(server, "simple", clients.pair_json()) == 200
    served = families(page(server))
    assert set(served) == set(documented) - elsewhere
    for name, (kind, samples) in served.items():
        assert kind == documented[name][0], name
        labels = {label for sample in samples for label in re.findall(r'(\w+)="', sample[2] or "")}
        assert labels == documented[name][1], name


def packed_environment(made):
    """An archive of a venv that sees the packages of the tests' own."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", made / "venv"], check=True, timeout=60)
    (site,) = (made / "venv").glob("lib/python*/site-packages")
    (site / "seen.pth").write_text(str(Path(np.__file__).parents[1]) + "\n")
    subprocess.run(["tar", "-czf", made / "packed.tar.gz", "-C", made / "venv", "."], check=True, timeout=60)
    return made / "packed.tar.gz"


IDENTITY = """\
import triton_python_backend_utils as pb


class TritonPythonModel:
    def execute(self, requests):
        return [pb.InferenceResponse([pb.Tensor("OUTPUT0", r.inputs()[0].as_numpy())]) for r in requests]
"""


@pytest.fixture(scope="module")
def after(tmp_path_factory):
    """A server that finds the environments of the one before it; the last test that uses it ends it."""
    path = tmp_path_factory.mktemp("after")
    with servers.galatea(path, "--model-control-mode=explicit", "--max-connections=20", env=shared_flags.observed()[1]) as server:
        server.repository = path
        yield server


def test_python_environments_are_counted(observed, tmp_path, request):
    """The environment is unpacked from an archive."""
    builds = lambda: clients.metrics(observed).get(("galatea_python_environment_builds_total", 'outcome="success"'), 0)  # noqa: E731
    before = builds()
    packed = f'parameters {{ key: "EXECUTION_ENV_PATH" value {{ string_value: "{packed_environment(tmp_path)}" }} }}\n'
    observed.place("packed", "python", identity_config(more=packed), files={"1/model.py": IDENTITY})
    assert post(observed, "packed", one_row()) == 200
    assert value(observed, "galatea_python_environments") == 1
    assert value(observed, "galatea_python_environments_size_bytes") > 1000
    assert builds() == before + 1
    after = request.getfixturevalue("after")
    write_model(after.repository, "packed", "galatea", "python", identity_config(more=packed), {"1/model.py": IDENTITY})
    load(after, "packed")
    assert value(after, "galatea_python_environments") == 1, "it is there already"
    assert value(after, "galatea_python_environment_builds_total", 'outcome="success"') == 0


def test_client_data_creates_no_series(observed):
    """Sends unknown names, versions, paths, methods, ids, headers and messages; the page gets no new lines."""
    server = observed
    server.place("simple", "add_sub", add_sub_config())
    assert post(server, "simple", clients.pair_json()) == 200

    def series():
        return {line.rsplit(" ", 1)[0] for line in page(server).splitlines()}

    before = series()
    hostile = [f"model{n}" for n in range(50)] + ['a"} 1\n', "%22%7D%201%0Aforged%201", "..%2F..%2Fetc", "\u00e9" * 100, "x" * 5000, "simple%00"]
    for name in hostile:
        path = name.replace("\n", "%0A").replace('"', "%22").replace(" ", "%20").encode().decode("latin-1").replace("\u00c3\u00a9", "%C3%A9")
        for method, where in [
            ("POST", f"/v2/models/{path}/infer"), ("POST", f"/v2/models/simple/versions/{path}/infer"), ("GET", f"/v2/models/{path}/stats"),
            ("POST", f"/v2/repository/models/{path}/load"), ("POST", f"/v2/repository/models/{path}/unload"), ("GET", f"/{path}"), ("BREW", f"/v2/{path}"),
        ]:
            clients.ask(server.http, method, where, {} if method == "POST" else None, {"X-Custom": path[:100], "traceparent": path[:100]})
        body = {"id": name, "inputs": [{"name": name, "shape": [1], "datatype": name, "data": [1]}], "parameters": {name[:100]: name}}
        assert post(server, "simple", body) >= 400
    with grpcclient.InferenceServerClient(server.grpc) as stock:
        for name in hostile:
            given = grpcclient.InferInput(name, [1, 16], "INT32")
            given.set_data_from_numpy(np.ones((1, 16), np.int32))
            for model, version in [(name, ""), ("simple", "7"), ("simple", name)]:
                with pytest.raises(InferenceServerException):
                    stock.infer(model, [given], version, request_id=name)
    # A model of a test before this one may go meanwhile.
    assert not series() - before


def gates_of(server, folder, config=GATE_CONFIG, code=GATE):
    """Requests to a model with one instance, which end when the test says so."""
    model = server.add("gate", "python", config + "instance_group [ { kind: KIND_CPU count: 1 } ]\n", files={"1/model.py": code})
    return Gates(server, folder, model)


def test_bytes_in_progress_are_reported_with_the_budget(shared, tmp_path):
    server, size = shared(*shared_flags.narrow()), 4 << 20
    gates = gates_of(server, tmp_path, GATE_CONFIG + tensor("input", "BIG", "TYPE_UINT8", "-1"))
    server.place("identity", "identity", identity_config())
    assert value(server, "galatea_memory_budget_limit_bytes") == 32 << 20
    refused = value(server, "galatea_memory_budget_refused_total")
    with concurrent.futures.ThreadPoolExecutor(1) as pool, clients.client(server, "http") as stock:
        arrays = {"IN": np.array([str(tmp_path / "a").encode()], object), "BIG": np.zeros(size, np.uint8)}
        held = pool.submit(clients.infer, stock, "http", gates.model, arrays)
        eventually("the request in hand is counted", lambda: value(server, "galatea_memory_budget_used_bytes") >= size)
        gates.permit("a")
        held.result()
    eventually("its bytes are released", lambda: value(server, "galatea_memory_budget_used_bytes") < size)
    assert value(server, "galatea_memory_budget_refused_total") == refused
    with clients.client(server, "http") as stock, pytest.raises(InferenceServerException):
        clients.infer(stock, "http", "identity", {"INPUT0": np.ones(64 << 18, np.float32)})
    assert value(server, "galatea_memory_budget_refused_total") > refused


def test_every_line_is_parsable_with_escaped_label_values(observed):
    tags = r'metric_tags { key: "team" value: "a \"b\" \\ \n c" }'
    server = observed
    server.place("simple", "add_sub", add_sub_config(more=tags))
    server.place("empty", "identity", identity_config())
    assert post(server, "simple", clients.pair_json()) == 200
    found = families(page(server))
    assert [(s[2], s[3]) for s in found["galatea_log_lines_lost_total"][1]] == [('log="server"', "0"), ('log="access"', "0")]
    tag = {sample[2] for _, samples in found.values() for sample in samples if "_team" in (sample[2] or "")}
    assert tag and all(r'_team="a \"b\" \\ \n c",model="simple"' in labels for labels in tag)
    for name, (kind, samples) in found.items():
        ends = {"histogram": ("_count", "_sum", "_bucket"), "summary": ("_count", "_sum", "")}.get(kind, ("",))
        assert all(sample[1].removeprefix(name) in ends for sample in samples), name


BATCHED_GATE = GATE.replace("[0].decode()", "[0][0].decode()").replace("np.zeros(1", "np.zeros((1, 1)")


def test_refused_requests_are_counted_by_reason(shared, tmp_path):
    policies = "default_queue_policy { max_queue_size: 1 } priority_queue_policy { key: 2 value { timeout_action: REJECT default_timeout_microseconds: 1 } }"
    batching = f"dynamic_batching {{ priority_levels: 2 default_priority_level: 1 {policies} }}\n"
    gates = gates_of(shared(), tmp_path, "max_batch_size: 1\n" + GATE_CONFIG + batching, BATCHED_GATE)
    gates.is_batched = True
    answers = gates.begin("a") + gates.queue("")
    assert gates.answer("") == 503, "the queue is full"
    # Its time is over when the instance is free, at the latest.
    late = gates.send(priority=2)
    eventually("the last one waits, or does not any more", lambda: late.done() or gates.pending() == 2)
    gates.permit("a")
    assert [answer.result(LIMIT) for answer in answers] == [200, 200] and late.result(LIMIT) == 503
    name = gates.model

    def refused(reason):
        return value(gates.server, "galatea_inference_requests_refused_total", f'model="{name}",reason="{reason}",version="1"')

    assert [refused(r) for r in ("queue_full", "queue_timeout", "unloading", "no_instance")] == [1, 1, 0, 0]
    assert value(gates.server, "nv_inference_request_failure", f'model="{name}",reason="REJECTED",version="1"') == 2


def load(server, name):
    assert clients.ask(server.http, "POST", f"/v2/repository/models/{name}/load", {})[0] == 200


def has_ended(connection):
    """Whether the server has closed it, with or without a word."""
    try:
        connection.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
        return True
    except BlockingIOError:
        return False
    except OSError:
        return True


def test_connections_and_restarts_are_counted(after):
    server = after
    write_model(server.repository, "failing", "galatea", "failing", identity_config())
    load(server, "failing")
    assert value(server, "galatea_connections_limit") == 20
    host, port = server.http.split(":")
    held = [socket.create_connection((host, int(port))) for _ in range(4)]
    for connection in held:
        connection.sendall(b"GET /v2/health/live HTTP/1.1\r\nHost: h\r\n\r\n")
        assert connection.recv(4096).startswith(b"HTTP/1.1 200")
    assert value(server, "galatea_connections_open") >= 4
    more = [socket.create_connection((host, int(port))) for _ in range(30)]

    # The page is asked for when no more of them come: its own connection is one that may have to give way.
    eventually("beyond the cap some are closed or refused", lambda: sum(map(has_ended, held + more)) >= 14)
    found = clients.metrics(server)
    closed = found["galatea_connections_closed_total", 'reason="room"']
    assert closed + found["galatea_connections_refused_total", ""] >= 10
    [connection.close() for connection in held + more]
    series = 'model="failing",version="1"'
    assert value(server, "galatea_model_instance_restarts_total", series) == 0
    assert post(server, "failing", {**one_row(), "parameters": {"fail": "panic"}}) == 500
    eventually("it is started again", lambda: value(server, "galatea_model_instance_restarts_total", series) == 1)
    found = clients.metrics(server)
    counts = [found[f"galatea_model_instances{kind}", series] for kind in ("", "_working")]
    assert counts == [1, 1]
    assert found["galatea_control_operations_running", 'operation="load"'] == 0


def test_requests_refused_at_start_and_exit_are_counted(after, tmp_path):
    server, exiting = after, 'reason="exiting"'
    write_model(server.repository, "gate", "galatea", "python", GATE_CONFIG, {"1/model.py": GATE})
    write_model(server.repository, "identity", "galatea", "identity", identity_config())
    load(server, "gate")
    load(server, "identity")
    assert value(server, "galatea_requests_refused_total", exiting) == 0
    assert value(server, "galatea_build_info", re.search(r"galatea_build_info\{(.*)\}", page(server))[1]) == 1
    with grpcclient.InferenceServerClient(server.grpc) as stock:
        assert stock.is_server_live()
        gates = Gates(server, tmp_path, "gate")
        held = gates.begin("a")
        server.process.send_signal(signal.SIGTERM)
        server.wait_for_line("Waiting for in-flight requests")
        given = grpcclient.InferInput("INPUT0", [3], "FP32")
        given.set_data_from_numpy(np.ones(3, np.float32))
        with pytest.raises(InferenceServerException):
            stock.infer("identity", [given])
        assert value(server, "galatea_requests_refused_total", exiting) == 1
        gates.permit("a")
        assert held[0].result() == 200


def test_a_configuration_sets_the_buckets(observed):
    def control(family, buckets):
        return f'model_metrics {{ metric_control [ {{ metric_identifier {{ family: "{family}" }} histogram_options {{ buckets: [ {buckets} ] }} }} ] }}\n'

    server, own = observed, control("galatea_inference_request_duration_seconds", "0, 60")
    server.place("own", "identity", identity_config(more=own))
    server.place("theirs", "identity", identity_config(more=control("mine", "3")))
    server.place("wrong", "identity", identity_config(more=control("galatea_inference_batch_size", "2, 1")), load=False)
    assert post(server, "own", one_row()) == 200
    lines = [line for line in page(server).splitlines() if 'request_duration_seconds_bucket{model="own"' in line]
    assert [re.search('le="(.*)"} (.*)', line).groups() for line in lines] == [("0", "0"), ("60", "1"), ("+Inf", "1")]
    server.wait_for_line("model_metrics of model 'theirs' has no effect on 'mine'")
    _, _, reason = clients.ask(server.http, "POST", "/v2/repository/models/wrong/load", {})
    assert "the buckets of 'galatea_inference_batch_size' are not valid for a histogram" in reason.decode()


def test_metrics_are_consistent_under_load(observed):
    server = observed
    name = server.add("simple", "add_sub", add_sub_config())
    series = f'model="{name}",version="1"'
    ended = threading.Event()

    def ask(_):
        done = 0
        while not ended.is_set():
            assert post(server, name, clients.pair_json(rows=2)) == 200
            done += 1
        return done

    def check(found, last):
        success = found["nv_inference_request_success", series]
        kinds = ("duration_seconds_count", "summary_us_count")
        assert {found[name, labels] for name, labels in found if name.endswith(kinds) and labels == series} == {success}
        whole = found["nv_inference_request_duration_us", series]
        assert abs(found["galatea_inference_request_duration_seconds_sum", series] * 1e6 - whole) <= 1
        assert whole - success <= found["nv_inference_request_summary_us_sum", series] <= whole
        assert found["galatea_inference_batch_size_count", series] == found["nv_inference_exec_count", series]
        assert found["galatea_inference_batch_size_sum", series] == found["nv_inference_count", series]
        grows = [key for key in found if key[0].endswith(("_total", "_count", "_sum", "_bucket", "_duration_us")) and "pending" not in key[0]]
        fallen = [key for key in grows if found[key] < last.get(key, 0)]
        assert not fallen
        return found

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        asking = [pool.submit(ask, n) for n in range(4)]
        last = {}
        try:
            for _ in range(100):
                last = check(clients.metrics(server), last)
        finally:
            ended.set()
        done = sum(each.result() for each in asking)
    last = check(clients.metrics(server), last)
    assert last["nv_inference_request_success", series] == done
    assert last["nv_inference_request_summary_us", f'{series},quantile="0.99"'] > 0


@tiers.measure
@pytest.mark.parametrize("flags", [(), ALL_ON], ids=["off", "on"])
def test_a_page_of_many_models_is_made_quickly(repository, serve, flags):
    """The limit suits a busy machine; the test prints the time."""
    for number in range(200):
        repository.add(f"model_{number}", "identity", identity_config())
    server = serve(repository.path, *flags)
    begin = time.monotonic()
    text = page(server)
    seconds = time.monotonic() - begin
    print(f"{len(text)} bytes in {seconds * 1000:.1f} ms")
    assert text.count("nv_inference_count{") == 200
    assert seconds < 3


@tiers.measure
def test_the_short_page_takes_a_millisecond_of_many_models(repository, serve):
    """Time of the processor, all that the server does meanwhile included; the test prints it."""
    for number in range(1000):
        repository.add(f"model_{number}", "identity", identity_config())
    server, scrapes = serve(repository.path), 1000
    connection = http.client.HTTPConnection(server.metrics, timeout=60)

    def scrape():
        connection.request("GET", "/metrics?scope=server")
        return connection.getresponse().read()

    text, before = scrape(), server.cpu_seconds()
    assert b"galatea_requests_waiting 0" in text and b"model=" not in text
    for _ in range(scrapes):
        scrape()
    seconds = (server.cpu_seconds() - before) / scrapes
    print(f"{len(text)} bytes in {seconds * 1000:.2f} ms")
    assert seconds < 0.001


def test_failed_models_have_a_ready_metric_of_zero(shared):
    server = shared()
    name = server.add("there", "identity", identity_config())
    broken = server.write("broken", "no_such_backend", identity_config())
    assert clients.ask(server.http, "POST", f"/v2/repository/models/{broken}/load", {})[0] == 400

    def ready():
        found = clients.metrics(server)
        return [found.get(("galatea_model_ready", f'model="{model}",version="1"')) for model in (name, broken)]

    assert ready() == [1, 0]
    server.unload(name)
    eventually("an unloaded model is not shown", lambda: ready() == [None, 0])


def test_open_metrics_are_sent_on_request(observed):
    """Requests like Prometheus; names and values equal those of the text format."""
    observed.add("asked", "identity", identity_config())
    asked = {"Accept": "application/openmetrics-text;version=1.0.0;q=0.6,text/plain;version=0.0.4;q=0.5,*/*;q=0.1"}
    status, headers, body = clients.ask(observed.metrics, "GET", "/metrics", headers=asked)
    assert status == 200 and dict(headers)["Content-Type"].startswith("application/openmetrics-text; version=1.0.0")
    text = body.decode()
    assert text.endswith("\n# EOF\n") and "# TYPE nv_inference_count unknown" in text
    names = lambda page: [line.split(" ")[0] for line in page.splitlines() if not line.startswith("#")]  # noqa: E731
    assert names(text) == names(page(observed))
