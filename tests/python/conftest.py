"""Servers and repositories for the tests. Every server is a real one on free ports."""

import signal

import numpy as np
import pytest

import clients
import perf_cases
import perf_models
import recorded as records
import repositories
import server_pool
import servers


def pytest_addoption(parser):
    parser.addoption("--record", action="store_true", help="write what the real server answers to tests/golden")


def pytest_configure(config):
    # A shell starts what runs in its background with SIGINT ignored, and programs that tests start would inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    config.addinivalue_line("markers", "peers: asks something that is not ours: the real Triton, a browser in full, another language")
    config.addinivalue_line("markers", "measure: looks at times, fills the machine, or lasts long")
    config.addinivalue_line("markers", "apart: shares nothing with other tests of its file and may run in another process")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Tests of one file run in one process, because they share servers, unless they are marked `apart`."""
    for item in items:
        if not item.get_closest_marker("apart") and not item.get_closest_marker("xdist_group"):
            item.add_marker(pytest.mark.xdist_group(item.path.stem))


@pytest.hookimpl(trylast=True)
def pytest_collection_finish(session):
    """xdist tells a group by the name of its tests; a pytest that it does not fit would scatter them without a word."""
    if session.config.getoption("loadgroup", False):
        alone = [item.nodeid for item in session.items if item.get_closest_marker("xdist_group") and "@" not in item.nodeid.rpartition("]")[2]]
        assert not alone, f"pytest-xdist does not keep groups of tests together here: {alone[:3]}"


def pytest_report_header():
    peers = {"Triton": servers.has_triton(), "perf_analyzer": servers.has_perf_analyzer()}
    return [f"server: {servers.galatea_binary()}", f"peers: {peers}"]


@pytest.fixture(scope="session")
def examples_server():
    """The example repository, every model as it is committed."""
    with servers.galatea(repositories.EXAMPLES) as server:
        yield server


@pytest.fixture(scope="session")
def perf_servers(tmp_path_factory):
    """Servers with the models of the load tool's tests, started when first asked for: `get("galatea")`."""
    flags = {"galatea": ["--allow-client-shm=true"], "triton": ["--cache-config", "local,size=16777216"]}
    running = {}

    class Servers:
        @staticmethod
        def get(target):
            if target in running and not clients.is_ready(running[target]):
                # Under load this Triton has been seen to break its heap and hang: that is not the tool's fault.
                running.pop(target).stop()
            if target not in running:
                path = perf_models.write_perf_models(tmp_path_factory.mktemp(target), target)
                running[target] = servers.TARGETS[target](path, *flags[target])
                running[target].repository = path
            return running[target]

    yield Servers
    for server in running.values():
        server.stop()


@pytest.fixture(scope="session")
def perf_data(tmp_path_factory):
    """The load tool's data files by name."""
    return perf_cases.write_data(tmp_path_factory.mktemp("data"))


@pytest.fixture
def repository(tmp_path):
    """An empty model repository; `add` writes a model of a built-in backend into it."""

    class Repository:
        path = tmp_path

        @staticmethod
        def add(name, backend, config, **more):
            return repositories.write_model(tmp_path, name, "galatea", backend, config, **more)

    return Repository


@pytest.fixture
def serve():
    """Starts servers that end with the test."""
    running = []

    def start(path, *flags, **options):
        server = servers.galatea(path, *flags, **options)
        running.append(server)
        return server

    yield start
    for server in running:
        server.stop()


@pytest.fixture
def pair():
    """Two INT32[1,16] rows for the models that add and subtract."""
    return np.arange(16, dtype=np.int32).reshape(1, 16), np.full((1, 16), 3, dtype=np.int32)


@pytest.fixture(scope="session")
def pool():
    """The running servers that tests share."""
    shared = server_pool.ServerPool()
    yield shared
    shared.stop()


@pytest.fixture
def shared(pool, request):
    """`shared(*flags)` is a running server that other tests use as well, with explicit model control and no model."""
    used = []

    def get(*flags, env=None):
        used.append(server_pool.SharedServer(pool, pool.get(flags, env), request.node.name))
        return used[-1]

    yield get
    for server in used:
        server.leave()


@pytest.fixture
def stage(pool):
    """`stage.get(target, write, *flags)` is a running server of that kind with the models that `write(folder, target)` writes."""
    stage = server_pool.Stage(pool)
    yield stage
    stage.end()


@pytest.fixture(scope="module")
def module_stage(pool):
    """The same for servers that all tests of a file use."""
    stage = server_pool.Stage(pool)
    yield stage
    stage.end()


@pytest.fixture
def recorded(request):
    """`recorded.holds(target, answer)` compares an answer with what the real server answered (recorded.py)."""
    # The name of the test without the server that it runs on.
    before, bracket, parameters = request.node.name.rstrip("]").partition("[")
    others = [part for part in parameters.split("-") if part not in servers.TARGETS]
    test = f"{before}[{'-'.join(others)}]" if others and bracket else before
    return records.Record(request.node.path.stem, test, request.config.getoption("--record"))
