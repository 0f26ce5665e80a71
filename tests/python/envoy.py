"""Envoy 1.40 in front of servers, with a configuration that a test gives as a dictionary. Peers tier: `cargo xtask setup envoy`."""

import json
import subprocess
import tempfile
from pathlib import Path

import pytest
import yaml

import clients
import servers
import waiting

PROGRAM = servers.PEERS / "unpacked/envoy/envoy/_bin/envoy"
needed = pytest.mark.skipif(not PROGRAM.exists(), reason="Envoy is not installed: `cargo xtask setup envoy`")
ADDRESS = "127.0.0.1"


class Envoy:
    """A running Envoy: `ports` of its listeners by their names, `stats()` and `clusters()` of its admin interface."""

    def __init__(self, config):
        self.folder = tempfile.TemporaryDirectory()
        self.admin_file = Path(self.folder.name, "admin")
        self.log = Path(self.folder.name, "log")
        admin = {"address": socket_address(ADDRESS, 0)}
        path = written(self.folder.name, {"admin": admin, **config})
        command = [PROGRAM, "-c", path, "--admin-address-path", self.admin_file, "--concurrency", "1", "--disable-hot-restart"]
        with self.log.open("w") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log)
        try:
            waiting.eventually("Envoy is ready", self.is_ready)
            self.ports = self.listeners()
        except BaseException:
            self.stop()
            raise

    def ask(self, path):
        return clients.ask(self.admin_file.read_text().strip(), "GET", path)

    def is_ready(self):
        assert self.process.poll() is None, self.log.read_text()[-3000:]
        try:
            return self.ask("/ready")[0] == 200
        except (OSError, ValueError):
            return False

    def listeners(self):
        status = json.loads(self.ask("/listeners?format=json")[2])
        return {one["name"]: one["local_address"]["socket_address"]["port_value"] for one in status["listener_statuses"]}

    def address(self, listener):
        return f"{ADDRESS}:{self.ports[listener]}"

    def stats(self, text=""):
        """Counters and gauges whose names contain `text`."""
        lines = self.ask(f"/stats?filter={text}")[2].decode().splitlines()
        pairs = (line.rsplit(": ", 1) for line in lines)
        return {name: int(value) for name, value in pairs if value.isdecimal()}

    def clusters(self):
        """The hosts of each cluster: name -> {"address:port": host}."""
        found = json.loads(self.ask("/clusters?format=json")[2])["cluster_statuses"]

        def key(host):
            at = host["address"]["socket_address"]
            return f"{at['address']}:{at['port_value']}"

        return {cluster["name"]: {key(host): host for host in cluster.get("host_statuses", [])} for cluster in found}

    def weights(self, cluster):
        return {address: host["weight"] for address, host in self.clusters()[cluster].items()}

    def stop(self):
        self.process.kill()
        self.process.wait()
        self.folder.cleanup()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()


def written(folder, config):
    """The file of a configuration. JSON is YAML too."""
    path = Path(folder, "envoy.json")
    path.write_text(json.dumps(config))
    return path


def validate(path):
    """Fails unless Envoy accepts the configuration file."""
    run = subprocess.run([PROGRAM, "--mode", "validate", "-c", path], capture_output=True, text=True, timeout=60)
    assert run.returncode == 0, run.stderr[-3000:]


def with_free_ports(text):
    """The configuration that `galatea deploy envoy` prints as a dictionary, with listeners at free ports of loopback."""
    config = yaml.safe_load(text)
    del config["admin"]
    for listener in config["static_resources"]["listeners"]:
        listener["address"] = socket_address(ADDRESS, 0)
    return config


def deployed(hosts, *words):
    """What `galatea deploy envoy` prints for these hosts, with free ports."""
    command = [servers.galatea_binary(), "deploy", "envoy", "--hosts", hosts, *words]
    run = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert run.returncode == 0, run.stderr
    return with_free_ports(run.stdout)


def socket_address(address, port):
    return {"socket_address": {"address": address, "port_value": port}}


def typed(name, **fields):
    return {"@type": f"type.googleapis.com/{name}", **fields}


def listener(name, cluster, headers=()):
    """A listener at a free port that passes HTTP and gRPC to a cluster, and adds headers to the requests."""
    added = [{"header": {"key": key, "value": value}} for key, value in headers]
    router = {"name": "router", "typed_config": typed("envoy.extensions.filters.http.router.v3.Router")}
    manager = typed(
        "envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
        stat_prefix=name,
        codec_type="AUTO",
        http_filters=[router],
        route_config={"virtual_hosts": [{
            "name": name, "domains": ["*"], "request_headers_to_add": added,
            "routes": [{"match": {"prefix": "/"}, "route": {"cluster": cluster, "timeout": "60s"}}],
        }]},
    )
    filters = [{"name": "http", "typed_config": manager}]
    return {"name": name, "address": socket_address(ADDRESS, 0), "filter_chains": [{"filters": filters}]}


def cluster(name, addresses, is_http2, policy=None):
    """A cluster of servers at these addresses, with a policy of balancing."""
    endpoints = []
    for one in addresses:
        host, port = one.rsplit(":", 1)
        endpoints.append({"endpoint": {"address": socket_address(host, int(port))}})
    protocol = {"http2_protocol_options": {}} if is_http2 else {"http_protocol_options": {}}
    options = typed("envoy.extensions.upstreams.http.v3.HttpProtocolOptions", explicit_http_config=protocol)
    balanced = {"load_balancing_policy": {"policies": [{"typed_extension_config": policy}]}} if policy else {}
    return {
        "name": name, "type": "STATIC", "connect_timeout": "5s", **balanced,
        "load_assignment": {"cluster_name": name, "endpoints": [{"lb_endpoints": endpoints}]},
        "typed_extension_protocol_options": {"envoy.extensions.upstreams.http.v3.HttpProtocolOptions": options},
    }


def by_load(**fields):
    """The policy that gives each server a share by the load that it reports."""
    name = "envoy.extensions.load_balancing_policies.client_side_weighted_round_robin.v3.ClientSideWeightedRoundRobin"
    return {"name": "envoy.load_balancing_policies.client_side_weighted_round_robin", "typed_config": typed(name, **fields)}
