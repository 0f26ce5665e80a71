"""Our load tool and the real perf_analyzer with the same arguments: reports and files are the same field by field once
the measured numbers are hidden, and so are messages and exit status. What perf_analyzer prints is recorded."""

import shlex
from functools import partial

import pytest

import perf_cases
import perf_tool
import tiers


def pairs(cases, is_in_commit=lambda case: True):
    """Cases and targets: ours on our server, in the tier commit for some, and in the tier peers both tools on the real one."""
    for case in cases:
        if case.name not in perf_cases.OTHERWISE:
            marks = [] if is_in_commit(case) else [tiers.peers]
            # The real tool first: it may record what ours is held against.
            yield pytest.param(case, "triton", id=f"{case}-triton", marks=tiers.peers)
            yield pytest.param(case, "galatea", id=f"{case}-galatea", marks=marks)
            yield pytest.param(case, "ours_on_triton", id=f"{case}-galatea-triton", marks=tiers.peers)


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


class Compared:
    """What is compared of a run. Addresses and folders, which differ from run to run, have names."""

    def __init__(self, case, run, names):
        self.case, self.run, self.names = case, run, names

    def hidden(self, text):
        for real, name in self.names.items():
            text = text.replace(real, name)
        return text

    @property
    def err(self):
        return self.hidden(self.run.err)

    def answer(self):
        """Returns all of it in a form that JSON can hold."""
        layout = perf_tool.layout_among_bodies if "-v -v" in self.case.line else partial(perf_tool.layout, delayed=self.case.delayed)
        return {
            "code": self.run.code,
            "shows_usage": perf_tool.USAGE.search(self.run.err) is not None,
            "messages": [] if self.case.trace else perf_tool.told(self.err),
            "layout": layout(self.hidden(self.run.out)),
            "csv": cells(*self.run.csv()) if self.case.csv and self.run.code == 0 else None,
            "profile": perf_tool.profile_shape(self.run.profile()) if self.case.profile and self.run.code == 0 else None,
        }

    def holds(self, recorded, target):
        """Holds the real tool's answer against the record, and ours but for what it does otherwise."""
        answer = self.answer()
        if target == "triton":
            recorded.holds(target, answer)
            return
        wanted = recorded.answer()
        if not self.case.trace:
            assert not perf_tool.missing_and_added(self.err, wanted["messages"])
        # For a wrong option the real tool exits with 99 like for everything, ours with 3, which its documentation has.
        if wanted["shows_usage"] and not perf_tool.STAND_IN:
            assert (answer["code"], wanted["code"]) == (3, 99)
        else:
            assert answer["code"] == wanted["code"], self.run.out + self.run.err
        for part in ("layout", "csv", "profile"):
            assert answer[part] == wanted[part], part


def cells(columns, rows):
    """The columns of a CSV file, and the kind of value in each cell."""
    return {"columns": columns, "rows": [[perf_tool.kind_of_cell(name, row[name]) for name in columns] for row in rows]}


@pytest.fixture
def compare(perf_servers, perf_data, recorded, tmp_path):
    """Runs a case with the tool of a target and compares it with the record."""

    def run_and_compare(case, target):
        server = perf_servers.get("galatea" if target == "galatea" else case.target)
        tool = perf_tool.REAL if target == "triton" else perf_tool.OURS
        run = perf_tool.run(tool, arguments(case, server, perf_data), tmp_path / "run")
        names = {server.http: "HTTP", server.grpc: "GRPC", server.metrics: "METRICS", str(perf_data["flat"].parent): "DATA"}
        Compared(case, run, names).holds(recorded, target)

    return run_and_compare


@pytest.mark.parametrize("case, target", list(pairs(perf_cases.MODES, lambda case: str(case) in perf_cases.IN_COMMIT)))
def test_reports_equal_perf_analyzers(case, target, compare):
    compare(case, target)


@pytest.mark.parametrize("case, target", list(pairs(perf_cases.FAILURES)))
def test_failures_equal_perf_analyzers(case, target, compare):
    """Impossible measurements are refused with the text and exit status of perf_analyzer."""
    compare(case, target)


@pytest.mark.parametrize("case", [case for case in perf_cases.OPTIONS if case.name not in perf_cases.OTHERWISE], ids=str)
@tiers.both
def test_option_errors_equal_perf_analyzers(case, target, perf_data, recorded, tmp_path):
    """Wrong options are refused with the same text; the usage text after it differs."""
    args = shlex.split(case.line.format(**perf_data)) + ["-u", "localhost:1"]
    run = perf_tool.run(perf_tool.TOOLS[target], args, tmp_path / "run")
    answer = {"shows_usage": perf_tool.USAGE.search(run.err) is not None, "messages": perf_tool.told(run.err), "code": run.code}
    if target == "triton":
        recorded.holds(target, answer)
        return
    wanted = recorded.answer()
    assert not perf_tool.missing_and_added(run.err, wanted["messages"])
    assert (run.code, wanted["code"]) == (3 if wanted["shows_usage"] and not perf_tool.STAND_IN else 99, 99)


def test_bodies_within_lines_are_ignored():
    body = '{"id":"","inputs":[{"name":"A","shape":[1]}],"outputs":[{"name":"B"}]}'
    apart = f"Settings\n\nConcurrency: 1\ninference response: {body}\n  Pass [1] throughput: 12.5 infer/sec\n    Request count: 5\nEnd\n"
    within = f"Settings\n\nConcurrency: 1\n  Pass [1] throughput: inference response: {body}\n9 infer/sec\n    Request count: {body}7\n\nE{body}nd\n\n"
    assert perf_tool.layout_among_bodies(apart) == perf_tool.layout_among_bodies(within)
    assert perf_tool.layout_among_bodies(apart) != perf_tool.layout_among_bodies(apart.replace("Request count", "Count"))
