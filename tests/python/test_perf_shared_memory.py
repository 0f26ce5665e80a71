"""The load tool with tensors in shared memory: what it reports, and that nothing is left of its regions however it ends."""

import contextlib
import http.client
import json
import re
import signal
import socket
import subprocess
from pathlib import Path

import pytest

import perf_models
import perf_tool
import servers
import waiting
from region_calls import call

pytestmark = pytest.mark.skipif(perf_tool.STAND_IN, reason="the real tool has none of this")

QUICK = ["-p", "150", "-s", "1000000", "-r", "3"]
# A measurement that lasts until something ends it.
LONG = ["-p", "1000", "-s", "1000000", "-r", "1000"]
SAVED = re.compile(
    r"^Shared memory \((\w+)\): (\d+) bytes of inputs per request and (\d+) bytes of outputs per response did not go through the "
    r"socket\.( The bytes of OUTPUT0 are not counted, as their number is open\.)?$", re.MULTILINE,
)


@pytest.fixture(scope="module")
def sockets(tmp_path_factory):
    """A server with the models of the load tool's tests on two Unix sockets."""
    path = perf_models.write_perf_models(tmp_path_factory.mktemp("unix"), "galatea")
    folder = tmp_path_factory.mktemp("sockets")
    flags = [f"--{protocol}-address=unix:{folder / protocol}" for protocol in ("http", "grpc")]
    with servers.galatea(path, "--allow-client-shm=true", *flags) as server:
        server.repository = path
        yield server


@pytest.fixture(params=["system", "memfd"])
def regions(request):
    """A kind of shared memory, and how a server that has it is reached."""
    return Regions(request.param, request.getfixturevalue("sockets" if request.param == "memfd" else "perf_servers"))


class Regions:
    def __init__(self, kind, found):
        self.kind = kind
        self.server = found if kind == "memfd" else found.get("galatea")

    def options(self, protocol):
        """The options of the address and of shared memory."""
        chosen = [f"--shared-memory={self.kind}", "-i", protocol, "-u", self.server.grpc if protocol == "grpc" else self.server.http]
        return [*chosen, f"--shared-memory-url={self.server.http}"] if (self.kind, protocol) == ("memfd", "grpc") else chosen

    def at_the_server(self):
        """Names of the regions that are registered."""
        return [region["name"] for region in json.loads(ask(self.server, "GET", "systemsharedmemory/status")[1])]

    def start(self, folder, *more, model="gated", protocol="http"):
        return perf_tool.start(perf_tool.OURS, ["-m", model, *self.options(protocol), *more], folder)


class UnixConnection(http.client.HTTPConnection):
    """A connection to `unix:PATH`."""

    def __init__(self, address):
        super().__init__("localhost", timeout=60)
        self.path = address.removeprefix("unix:")

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


def ask(server, method, path, body=None):
    """Status and body of a call, over TCP or a Unix socket."""
    connect = UnixConnection if server.http.startswith("unix:") else http.client.HTTPConnection
    with contextlib.closing(connect(server.http)) as connection:
        connection.request(method, f"/v2/{path}", body)
        reply = connection.getresponse()
        return reply.status, reply.read()


def files_of(pid):
    """The regions of a tool that have names in the file system."""
    return list(Path("/dev/shm").glob(f"*_{pid}_*"))


@pytest.fixture
def gate(regions):
    """Holds the requests of the model `gated` while it is closed."""

    class Gate:
        folder = regions.server.repository / "gated/1"

        def close(self):
            (self.folder / "closed").touch()

        def open(self):
            (self.folder / "closed").unlink(missing_ok=True)

        def settle(self):
            """Opens it, and waits until the model holds nothing: it executes one request after the other."""
            self.open()
            tensor = {"name": "INPUT0", "shape": [4], "datatype": "FP32", "data": [1, 2, 3, 4]}
            assert ask(regions.server, "POST", "models/gated/infer", json.dumps({"inputs": [tensor]}))[0] == 200
            (self.folder / "holding").unlink(missing_ok=True)

        def wait(self):
            waiting.eventually("a request is held", (self.folder / "holding").exists)

    gate = Gate()
    gate.close()
    yield gate
    gate.settle()


@pytest.mark.parametrize("protocol", ["http", "grpc"])
@pytest.mark.parametrize("model, inputs, outputs", [("simple", 128, 128), ("bytes", 132, None)])
def test_what_the_regions_save_is_reported(regions, protocol, model, inputs, outputs, tmp_path):
    """On the terminal and in the summary. What a text takes is not known before the model answers."""
    chosen = [*regions.options(protocol), "-m", model, "--string-length", "128", *QUICK, "--json", "summary.json", "--html", "page.html"]
    run = perf_tool.run(perf_tool.OURS, chosen, tmp_path)
    assert run.code == 0, run.out + run.err
    kind, given, taken, uncounted = SAVED.search(run.out).groups()
    assert (kind, int(given), int(taken)) == (regions.kind, inputs, outputs or 0)
    assert (uncounted is None) == (outputs is not None)
    summary = json.loads(run.path("summary.json").read_text())
    assert (summary["shared_memory"], summary["tensor_bytes"]["inputs_per_request"]) == (regions.kind, inputs)
    assert summary["tensor_bytes"]["outputs_per_response"] == (outputs or 0)
    assert not regions.at_the_server()
    assert '"shared_memory":"%s"' % regions.kind in run.path("page.html").read_text()


def test_without_regions_the_report_is_that_of_perf_analyzer(perf_servers, tmp_path):
    """Only the summary has the bytes that go through the socket."""
    server = perf_servers.get("galatea")
    run = perf_tool.run(perf_tool.OURS, ["-m", "simple", "-u", server.http, *QUICK, "--json", "summary.json"], tmp_path)
    assert run.code == 0 and "Shared memory" not in run.out
    summary = json.loads(run.path("summary.json").read_text())
    assert summary["shared_memory"] == "none"
    assert summary["tensor_bytes"] == {"inputs_per_request": 128, "outputs_per_response": 128}


def test_two_tools_do_not_meet(regions, gate, tmp_path):
    """Both have regions of their own at the same time, and none of them a name in the file system."""
    tools = [regions.start(tmp_path / str(i), "--request-count", "2") for i in range(2)]
    waiting.eventually("both have a region for their input and one for their output", lambda: len(regions.at_the_server()) == 4)
    # A tool removes a name after the server has registered it; the model holds one request, so it tells of one tool only.
    waiting.eventually("no region has a name", lambda: not [file for tool in tools for file in files_of(tool.pid)])
    for tool in tools:
        names = [name for name in regions.at_the_server() if f"_{tool.pid}_" in name]
        assert sorted(name.split("_")[0] for name in names) == ["INPUT0", "OUTPUT0"]
    gate.open()
    for i, tool in enumerate(tools):
        run = perf_tool.finish(tool, [], tmp_path / str(i))
        assert run.code == 0, run.out + run.err
    assert not regions.at_the_server()


@pytest.mark.parametrize("how", ["interrupted once", "interrupted twice", "terminated", "failed"])
def test_nothing_is_left_of_regions(regions, gate, how, tmp_path):
    tool = regions.start(tmp_path, *LONG)
    gate.wait()
    assert len(regions.at_the_server()) == 2
    if how == "failed":
        # Without one of its regions each later request fails.
        (output,) = [name for name in regions.at_the_server() if name.startswith("OUTPUT0")]
        assert ask(regions.server, "POST", f"systemsharedmemory/region/{output}/unregister")[0] == 200
        gate.open()
    elif how == "terminated":
        tool.terminate()
    else:
        tool.send_signal(signal.SIGINT)
        said = tmp_path / "stdout"
        waiting.eventually("the tool has noticed", lambda: "Waiting for in-flight" in said.read_text())
        if how == "interrupted twice":
            tool.send_signal(signal.SIGINT)
        else:
            gate.open()
    run = perf_tool.finish(tool, [], tmp_path)
    status = {"interrupted once": 0, "interrupted twice": 0, "terminated": 143, "failed": 99}[how]
    assert run.code == status, run.out + run.err
    assert not regions.at_the_server() and not files_of(tool.pid)


@pytest.mark.parametrize("protocol, kind", [("http", "HTTP"), ("grpc", "gRPC")])
def test_a_socket_that_is_not_there_is_named(protocol, kind, tmp_path):
    path = tmp_path / "none"
    run = perf_tool.run(perf_tool.OURS, ["-m", "simple", "-i", protocol, "-u", f"unix://{path}"], tmp_path / "run")
    assert run.code == 99
    assert f"failed to connect to unix:{path}: No such file or directory" in run.err
    assert f"is this the path of its {kind} socket?" in run.err


def test_a_server_that_takes_no_regions_is_an_error(shared, tmp_path):
    server = shared()
    model = server.add("simple", "add_sub", perf_models.add_sub_config())
    run = perf_tool.run(perf_tool.OURS, ["-m", model, "-u", server.http, "--shared-memory=system"], tmp_path)
    assert run.code == 99 and "Start the server with '--allow-client-shm=true' to enable." in run.err
    assert call(server, "status") == (200, "[]")


@pytest.mark.parametrize("protocol", ["http", "grpc"])
def test_commands_reach_a_unix_socket(sockets, protocol, tmp_path):
    address = sockets.grpc if protocol == "grpc" else sockets.http
    ask = [servers.galatea_binary(), "infer", "simple", "INPUT0=zeros", "INPUT1=zeros", "-i", protocol, "-u"]
    done = subprocess.run([*ask, address], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and "OUTPUT0" in done.stdout, done.stderr
    listed = subprocess.run(
        [servers.galatea_binary(), "models", "-i", protocol, "-u", address], capture_output=True, text=True, timeout=60
    )
    assert listed.returncode == 0 and "simple" in listed.stdout, listed.stderr
