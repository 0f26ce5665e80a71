"""Our load tool and the real perf_analyzer, same arguments, same server: reports and files are the same field by
field once the measured numbers are hidden, and so are messages and exit status."""

import shlex
from functools import partial

import pytest

import perf_cases
import perf_tool
import servers

pytestmark = pytest.mark.skipif(not servers.has_perf_analyzer(), reason="perf_analyzer is not installed")


def alike(cases):
    return [case for case in cases if case.name not in perf_cases.OTHERWISE]


def arguments(case, server, data):
    """The command line of a case against a server."""
    line = case.line.format(metrics=server.metrics, **data)
    args = shlex.split(line) + case.more
    if "-u" not in args:
        args += ["-u", server.grpc if "grpc" in args else server.http]
    if case.csv:
        args += ["-f", "report.csv"]
    if case.profile:
        args += ["--profile-export-file", "profile.json"]
    return args


def run_both(case, server, data, folder):
    return perf_tool.run_pair(arguments(case, server, data), folder, at_once=perf_cases.share_a_server(case.line))


@pytest.mark.parametrize("case", alike(perf_cases.MODES), ids=str)
def test_report(case, perf_servers, perf_data, tmp_path):
    real, ours = run_both(case, perf_servers.get(case.target), perf_data, tmp_path)
    if not case.trace:
        assert not perf_tool.missing_and_added(ours.err, real.err)
    layout = perf_tool.layout_among_bodies if "-v -v" in case.line else partial(perf_tool.layout, delayed=case.delayed)
    assert layout(ours.out) == layout(real.out)
    assert ours.code == real.code
    if case.csv:
        same_csv(ours.csv(), real.csv())
    if case.profile:
        assert perf_tool.profile_shape(ours.profile()) == perf_tool.profile_shape(real.profile())


def test_bodies_within_lines_are_left_out():
    body = '{"id":"","inputs":[{"name":"A","shape":[1]}],"outputs":[{"name":"B"}]}'
    apart = f"Settings\n\nConcurrency: 1\ninference response: {body}\n  Pass [1] throughput: 12.5 infer/sec\n    Request count: 5\nEnd\n"
    within = f"Settings\n\nConcurrency: 1\n  Pass [1] throughput: inference response: {body}\n9 infer/sec\n    Request count: {body}7\n\nE{body}nd\n\n"
    assert perf_tool.layout_among_bodies(apart) == perf_tool.layout_among_bodies(within)
    assert perf_tool.layout_among_bodies(apart) != perf_tool.layout_among_bodies(apart.replace("Request count", "Count"))


def same_csv(ours, real):
    """Same columns, as many rows, and in every cell the same kind of value."""
    assert ours[0] == real[0]
    assert len(ours[1]) == len(real[1])
    for row, other in zip(ours[1], real[1]):
        assert {name: perf_tool.kind_of_cell(name, cell) for name, cell in row.items()} \
            == {name: perf_tool.kind_of_cell(name, cell) for name, cell in other.items()}


@pytest.mark.parametrize("case", alike(perf_cases.FAILURES), ids=str)
def test_failure(case, perf_servers, perf_data, tmp_path):
    """What cannot be measured is refused with the same words and the same exit status."""
    real, ours = run_both(case, perf_servers.get(case.target), perf_data, tmp_path)
    assert not perf_tool.missing_and_added(ours.err, real.err)
    assert perf_tool.layout(ours.out) == perf_tool.layout(real.out)
    same_failure(ours, real)


def same_failure(ours, real):
    """Exit status: for a wrong option 2.50 of the real tool exits with 99 like for everything, ours the 3 that its
    documentation has for it."""
    wrong_option = perf_tool.USAGE.search(real.err) is not None
    assert real.code == 99
    assert ours.code == (3 if wrong_option and not perf_tool.STAND_IN else 99)


@pytest.mark.parametrize("case", alike(perf_cases.OPTIONS), ids=str)
def test_option(case, perf_data, tmp_path):
    """A wrong option is refused with the same text; the usage text after it is our own."""
    args = shlex.split(case.line.format(**perf_data)) + ["-u", "localhost:1"]
    real, ours = perf_tool.run_pair(args, tmp_path)
    assert not perf_tool.missing_and_added(ours.err, real.err)
    same_failure(ours, real)
