"""`galatea deploy envoy`: what it prints is the file in deploy/envoy, the real Envoy takes it, and a server that dies costs no request."""

import concurrent.futures
import http.server
import json
import subprocess
import threading

import numpy as np
import pytest
import yaml

import clients
import envoy
import servers
import tiers
import waiting
from deploying import DEPLOY
from repositories import identity_config, write_model

HOSTS = "galatea-0.galatea,galatea-1.galatea,galatea-2.galatea"
VECTOR = np.arange(3, dtype=np.float32)
# In flight at once, as in a fleet's proof.
CALLERS = 16


def deploy(*words):
    return subprocess.run([servers.galatea_binary(), "deploy", *words], capture_output=True, text=True, timeout=60)


def written(*words):
    done = deploy("envoy", *words)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_file_is_what_the_command_prints():
    assert (DEPLOY / "envoy/envoy.yaml").read_text() == written("--hosts", HOSTS)


def test_options_are_in_the_configuration():
    text = written("--hosts", "a:1:2,[::1]", "--http-port=81", "--grpc-port=82", "--admin-port=83", "--address=127.0.0.1",
                   "--sequence-header=x-id", "--retries=4", "--retry-buffer-mb=3", "--try-timeout-secs=7")
    config = yaml.safe_load(text)
    assert config["admin"]["address"]["socket_address"] == {"address": "127.0.0.1", "port_value": 83}
    ports = {one["name"]: one["address"]["socket_address"] for one in config["static_resources"]["listeners"]}
    assert ports == {"http": {"address": "127.0.0.1", "port_value": 81}, "grpc": {"address": "127.0.0.1", "port_value": 82}}
    hosts = {}
    for cluster in config["static_resources"]["clusters"]:
        if "cluster_type" in cluster:
            continue
        assert cluster["per_connection_buffer_limit_bytes"] == 3 << 20
        (group,) = cluster["load_assignment"]["endpoints"]
        found = [one["endpoint"]["address"]["socket_address"] for one in group["lb_endpoints"]]
        hosts[cluster["name"]] = [(one["address"], one["port_value"]) for one in found]
    assert hosts["http"] == hosts["http_sequences"] == [("a", 1), ("::1", 8000)]
    assert hosts["grpc"] == hosts["grpc_sequences"] == [("a", 2), ("::1", 8001)]
    assert hosts["http_server_0"] == [("a", 1)] and hosts["http_server_1"] == [("::1", 8000)]
    assert "x-id" in text and "x-sequence-id" not in text and "num_retries: 4" in text
    # Not for sequences: no other server could answer.
    assert text.count("per_try_idle_timeout: 7s") == 2 and "per_try_idle_timeout" not in written("--hosts", "a")


@pytest.mark.parametrize("words, told", [
    ([], "a proxy is missing"),
    (["nginx"], "'deploy' has no 'nginx'"),
    (["envoy"], "--hosts is missing"),
    (["envoy", "--hosts", "a,a"], "'a' is there twice"),
    (["envoy", "--hosts", "a\"b"], "is no host"),
])
def test_mistakes_are_named(words, told):
    done = deploy(*words)
    assert done.returncode != 0 and told in done.stderr and done.stdout == ""


@tiers.peers
@envoy.needed
@pytest.mark.parametrize("hosts", [HOSTS, "10.0.0.1,[fd00::1]:80:81"])
def test_envoy_accepts_it(hosts, tmp_path):
    path = tmp_path / "envoy.yaml"
    path.write_text(written("--hosts", hosts))
    envoy.validate(path)


@pytest.fixture
def fleet(tmp_path):
    """Three servers with a model that takes some time, and one that keeps the state of sequences."""
    delay = 'parameters { key: "execute_delay_ms" value { string_value: "2" } }\n'
    write_model(tmp_path / "models", "vector", "galatea", "identity", identity_config(more=delay))
    running = [servers.galatea(tmp_path / "models") for _ in range(3)]
    try:
        yield running
    finally:
        for server in running:
            server.process.kill()
            server.process.wait()


def in_front(fleet, *more):
    hosts = ",".join(f"{server.http}:{server.grpc.rsplit(':', 1)[1]}" for server in fleet)
    return envoy.Envoy(envoy.with_free_ports(written("--hosts", hosts, *more)))


def are_healthy(proxy, count):
    return lambda: all(
        sum("failed_active_health_check" not in host["health_status"] for host in proxy.clusters()[name].values()) == count
        for name in ("http", "grpc")
    )


def call_until(done, protocol, address):
    """Calls until `done`. Returns the number of answers; each is the right one, or this fails."""
    count = 0
    with clients.MODULES[protocol].InferenceServerClient(address) as stock:
        while not done.is_set():
            assert (clients.infer(stock, protocol, "vector", {"INPUT0": VECTOR})["OUTPUT0"] == VECTOR).all()
            count += 1
    return count


@tiers.peers
@envoy.needed
@pytest.mark.parametrize("protocol", ["http", "grpc"])
def test_a_server_that_is_killed_costs_no_request(fleet, protocol):
    with in_front(fleet) as proxy:
        waiting.eventually("all are healthy", are_healthy(proxy, 3))
        done, address = threading.Event(), proxy.address(protocol)
        with concurrent.futures.ThreadPoolExecutor(CALLERS) as callers:
            counts = [callers.submit(call_until, done, protocol, address) for _ in range(CALLERS)]
            try:
                key = f"cluster.{protocol}.upstream_rq_total"
                waiting.eventually("requests flow", lambda: proxy.stats(key).get(key, 0) > 200 or any(c.done() for c in counts))
                fleet[0].process.kill()
                fleet[0].process.wait()
                waiting.eventually("Envoy has noticed", are_healthy(proxy, 2))
                before = proxy.stats(key)[key]
                waiting.eventually("requests still flow", lambda: proxy.stats(key)[key] > before + 200 or any(c.done() for c in counts))
            finally:
                done.set()
            assert sum(count.result() for count in counts) > 400
        host = proxy.clusters()[protocol][getattr(fleet[0], protocol)]
        assert host["health_status"]["failed_active_health_check"]


@tiers.peers
@envoy.needed
def test_requests_of_a_sequence_go_to_one_server(fleet):
    with in_front(fleet) as proxy:
        waiting.eventually("all are healthy", are_healthy(proxy, 3))
        body = json.dumps({"inputs": [{"name": "INPUT0", "shape": [3], "datatype": "FP32", "data": [1, 2, 3]}]})

        def taken():
            """The number of requests that each server has taken."""
            clusters = proxy.clusters()
            return [sum(int(c.get("value", 0)) for host in clusters[f"http_server_{number}"].values()
                        for c in host["stats"] if c["name"] == "rq_total") for number in range(3)]

        used = set()
        for sequence in range(20):
            before = taken()
            for _ in range(3):
                status, _, answer = clients.ask(
                    proxy.address("http"), "POST", "/v2/models/vector/infer", body, {"x-sequence-id": str(sequence)}
                )
                assert status == 200, answer
            more = [now - then for now, then in zip(taken(), before)]
            assert sorted(more) == [0, 0, 3], more
            used.add(more.index(3))
        assert len(used) > 1, "sequences are spread"


class Failing(http.server.BaseHTTPRequestHandler):
    """Ready, and answers each request with 500 while `fails` is set."""

    protocol_version = "HTTP/1.1"
    fails = threading.Event()

    def answer(self):
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.send_response(500 if self.fails.is_set() and "infer" in self.path else 200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    do_GET = do_POST = answer

    def log_message(self, *_):
        pass


@tiers.peers
@envoy.needed
def test_a_server_that_answers_500_is_ejected_and_returns(fleet):
    Failing.fails.set()
    with http.server.ThreadingHTTPServer((envoy.ADDRESS, 0), Failing) as failing:
        thread = threading.Thread(target=failing.serve_forever)
        thread.start()
        address = f"{envoy.ADDRESS}:{failing.server_port}"
        try:
            hosts = f"{fleet[0].http}:{fleet[0].grpc.rsplit(':', 1)[1]},{address}:{fleet[1].grpc.rsplit(':', 1)[1]}"
            with envoy.Envoy(envoy.with_free_ports(written("--hosts", hosts))) as proxy:
                waiting.eventually("both are healthy", are_healthy(proxy, 2))

                def is_ejected():
                    clients.ask(proxy.address("http"), "POST", "/v2/models/vector/infer", "{}")
                    return proxy.clusters()["http"][address]["health_status"].get("failed_outlier_check")

                waiting.eventually("the failing one is ejected", is_ejected)
                Failing.fails.clear()
                waiting.eventually("it is back", lambda: not is_ejected())
        finally:
            failing.shutdown()
            thread.join()
