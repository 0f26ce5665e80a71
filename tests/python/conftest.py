"""Servers and repositories for the tests. Every server is a real one on free ports."""

import re

import numpy as np
import pytest
from _pytest.runner import runtestprotocol

import clients
import perf_cases
import perf_models
import repositories
import servers


# Files whose tests measure times, or fill the machine on purpose: nothing else runs beside them (`-m alone`).
ALONE = {
    "test_chaos",
    "test_disk_full",
    "test_isolation",
    "test_load",
    "test_perf",
    "test_perf_beyond",
    "test_perf_formats",
    "test_python_queue",
    "test_python_watchdog",
    "test_sequence_chaos",
}
# Files whose tests share nothing, so that each may run in another process. All others stay together, as they share servers.
APART = {"test_docs_commands", "test_flags", "test_scenarios", "test_lifecycle", "test_process", "test_python_workers", "test_seeds"}


def pytest_configure(config):
    config.addinivalue_line("markers", "alone: measures times; nothing else may run beside it")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    for item in items:
        file = item.path.stem
        if file in ALONE:
            item.add_marker(pytest.mark.alone)
        if file not in APART:
            item.add_marker(pytest.mark.xdist_group(file))


@pytest.hookimpl(trylast=True)
def pytest_collection_finish(session):
    """xdist tells a group by the name of its tests; a pytest that it does not fit would scatter them without a word."""
    if session.config.getoption("loadgroup", False):
        alone = [item.nodeid for item in session.items if item.get_closest_marker("xdist_group") and "@" not in item.nodeid.rpartition("]")[2]]
        assert not alone, f"pytest-xdist does not keep groups of tests together here: {alone[:3]}"


# How often a test runs at most, of those that may be repeated.
TRIES = 3
# Files that compare what two load tools measured. A machine that stands still for a window changes what both report.
MEASURED = {"test_perf", "test_perf_beyond", "test_perf_formats"}
# Parts of a test's name that say that it asks the real Triton.
REAL_SERVER = {"triton", "real", "test_real"}


def may_repeat(item):
    """Whether a failure may be of the machine's making. Of the real server too: on a busy machine it counts a request
    after its answer, and is ready before its metrics are. What it does is then no answer to what it does at rest."""
    asks_real_server = not REAL_SERVER.isdisjoint(re.split(r"[-\[\]]", item.name))
    return asks_real_server or item.path.stem in MEASURED


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item, nextitem):
    """A test runs once more if the real Triton crashed under it, which it does at times, of a stream that is left for
    example, or if it may be repeated. One that always fails, fails. Each repetition is told at the end."""
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    failures = []
    for _ in range(TRIES):
        reports = runtestprotocol(item, log=False, nextitem=nextitem)
        failed = next((report for report in reports if report.failed), None)
        crashed = servers.has_triton() and servers.take_crashed()
        if not failed or not (crashed or may_repeat(item)):
            break
        failures.append(getattr(getattr(failed.longrepr, "reprcrash", None), "message", "failed"))
        # With all fixtures made anew: the server they share may be the one that crashed.
        item.session._setupstate.teardown_exact(None)
    for report in reports:
        if report.when == "call":
            report.user_properties += [("repeated", message) for message in failures]
        item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


def pytest_terminal_summary(terminalreporter):
    for report in terminalreporter.stats.get("passed", []):
        for name, message in report.user_properties:
            if name == "repeated":
                terminalreporter.write_line(f"REPEATED {report.nodeid} - {message.splitlines()[0][:200]}")


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
    flags = {"galatea": [], "triton": ["--cache-config", "local,size=16777216"]}
    running = {}

    class Servers:
        @staticmethod
        def get(target):
            if target == "triton" and not servers.has_triton():
                pytest.skip("the real Triton is not installed")
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
