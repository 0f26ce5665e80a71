"""Arize Phoenix, a receiver of OpenTelemetry by others: it takes spans as protobuf over HTTP and gRPC, and keeps them in SQLite."""

import json
import urllib.parse

import clients
import servers
from object_stores import Process
from otel_collector import Span

PYTHON = servers.PEERS / "trace-receiver/bin/python"
SCRIPT = servers.ROOT / "tests/python/phoenix_on_loopback.py"
# The attribute of a resource that names the project in which Phoenix keeps its spans.
PROJECT = "openinference.project.name"


def has_receiver():
    return (servers.PEERS / "trace-receiver.installed").exists()


class Receiver(Process):
    """A running Phoenix with an empty store in `home`, which asks nobody outside."""

    def __init__(self, home):
        http, grpc = servers.free_ports(2)
        self.urls = {"http/protobuf": f"http://127.0.0.1:{http}/v1/traces", "grpc": f"http://127.0.0.1:{grpc}"}
        settings = {
            "PHOENIX_HOST": "127.0.0.1", "PHOENIX_PORT": str(http), "PHOENIX_GRPC_PORT": str(grpc), "PHOENIX_WORKING_DIR": str(home),
            "PHOENIX_ALLOW_EXTERNAL_RESOURCES": "false", "PHOENIX_TELEMETRY_ENABLED": "false", "PHOENIX_DISABLE_AGENT_ASSISTANT": "true",
            "PHOENIX_ENABLE_MCP_SERVER": "false", "PYTHONUNBUFFERED": "1", "HOME": str(home),
        }
        super().__init__([PYTHON, SCRIPT], settings, said=r"Uvicorn running on http://127\.0\.0\.1:(\d+)")


class Project:
    """The spans that a receiver has in a project, and the `url` that takes more of them over a protocol."""

    def __init__(self, receiver, name, protocol):
        self.receiver, self.name, self.url = receiver, name, receiver.urls[protocol]

    def of(self, trace):
        """The spans of a trace so far."""
        query = urllib.parse.urlencode({"trace_id": trace, "limit": 1000})
        path = f"/v1/projects/{urllib.parse.quote(self.name, safe='')}/spans/otlpv1?{query}"
        status, _, answer = clients.ask(self.receiver.address, "GET", path)
        # The first span makes the project.
        assert status in (200, 404), answer
        return [] if status == 404 else [span_of(one) for one in json.loads(answer)["data"]]


def span_of(stored):
    """A span as the receiver shows it: of its time microseconds are kept, of its kind and the client's state nothing."""
    attributes = {one["key"]: value for one in stored["attributes"] for value in one["value"].values() if value is not None}
    events = [(one["name"], one["time_unix_nano"]) for one in stored["events"]]
    return Span(
        stored["name"], 1, (stored["trace_id"], stored["span_id"], stored["parent_span_id"] or ""),
        (stored["start_time_unix_nano"], stored["end_time_unix_nano"]), attributes, events,
        (stored["status"]["code"], stored["status"]["message"] or ""), "",
    )
