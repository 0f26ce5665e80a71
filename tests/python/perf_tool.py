"""Runs our load tool and the real perf_analyzer with the same arguments, and takes their reports apart so that
two of them can be compared field by field: text, CSV, profile JSON, messages and exit status."""

import csv
import json
import os
import re
import subprocess
import threading
from dataclasses import dataclass, field
from pathlib import Path

import pytest

import servers
import tiers

REAL, OURS = "real", "ours"
# The tool that a test runs for a target of `tiers.both`.
TOOLS = {"galatea": OURS, "triton": REAL}
# The tool as a parameter of a test: ours in the tier commit, the real one in the tier peers.
BOTH = [pytest.param(OURS, id="galatea"), pytest.param(REAL, id="triton", marks=tiers.peers)]
# What PERF_TOOL_OURS names is run in our place: with `real` the comparison itself is tested.
STAND_IN = os.environ.get("PERF_TOOL_OURS") == "real"

NUMBER = re.compile(r"(?<![\w.#-])-?\d+(?:\.\d+)?(?:e[+-]?\d+)?(?![\w.]*[A-Za-z_])")
USAGE = re.compile(r"^Usage: ", re.MULTILINE)
# Lines whose numbers are settings or names of things, not measurements: they must be equal as they stand.
KEPT = re.compile(r"^(Request concurrency: |Request Rate: .* inference|  [^ ].*, version: )")
FOOTER = re.compile(r"^((?:Concurrency|Request Rate): [^,]+)(, throughput: .*)$")
# Lines that come and go with the load of the machine; no run of either tool can promise them.
OVERLOAD = re.compile(r"\s*\[WARNING\] Perf Analyzer is not able to keep up[^\n]*")
DELAY = re.compile(r"\s*(\[WARNING\] Perf Analyzer was not able to keep up|Avg send request rate: )")
BY_CHANCE = re.compile(
    r"\s*\[WARNING\] Perf Analyzer is not able to keep up"
    r"|Server average accounted time was larger than client average wait time"
    r"|WARNING: Pass contained only one request"
    r"|WARNING: Triton metrics endpoint (latency \(|is slow: )"
)
# What ours adds: that it was the limit itself, where help is, a word it does not use. And what it leaves out:
# the error numbers of the real tool's JSON library.
ADDED = re.compile(
    r"The tool's own threads were busy|Try '.* --help' for the options\.|Did you mean '.*'\?$|WARNING: ignoring '.*', which is not an option"
)
LEFT_OUT = re.compile(r"cb::Error +: \d+|Offset : \d+")
# Where ours has words of its own: parts of the real tool's lines, and what stands there instead.
REWORDED = {
    "HTTP client failed: Couldn't connect to server": "failed to connect to http://",
    "failed to connect to all addresses; last error: UNKNOWN: ipv4:127.0.0.1:1: Failed to connect to remote host: "
    "Connection refused": "failed to connect to grpc://",
    "'posson'": "'poisson'",
    "The value must be a valid file path": "",
}
# What ours reports of a point that is not stable, of which the real tool reports nothing: its figures and its line at
# the end; and its line about shared memory.
BEYOND = re.compile(
    r"^  Unstable windows:\n(?:  .*\n)*\n?|^.*, throughput: .* \(unstable\)\n|^Shared memory \(\w+\): .*\n", re.MULTILINE
)
# With `-v -v` every request and response is part of the report.
BODY_TITLE = re.compile(r"inference (?:request|response): ")


def command_of(tool):
    """(start of the command line, environment) of a tool."""
    if tool == REAL or STAND_IN:
        if not servers.has_perf_analyzer():
            pytest.skip("perf_analyzer is not installed: `cargo xtask setup`")
        home = servers.PEERS / "perf_analyzer"
        return [home / "bin/perf_analyzer"], {"LD_LIBRARY_PATH": str(home / "lib")}
    return [servers.galatea_binary().resolve(), "perf"], {}


@dataclass
class Run:
    """What a load tool printed and wrote. `folder` holds its files."""

    args: list
    code: int
    out: str
    err: str
    folder: Path
    cpu_seconds: float
    fields: dict = field(default=None)

    def report(self):
        if self.fields is None:
            self.fields = parse_report(self.out)
        return self.fields

    def path(self, name):
        return self.folder / name

    def csv(self, name="report.csv"):
        return parse_csv(self.path(name))

    def profile(self, name="profile.json"):
        return json.loads(self.path(name).read_text())


def program(tool):
    """The file that is run; ours measures when it is started under the name perf_analyzer."""
    return command_of(tool)[0][0].resolve()


def start(tool, args, folder, command=None, cpus=None):
    """The tool as a running process, its files in `folder`; `cpus` are the only ones it may use."""
    begin, env = command_of(tool)
    folder.mkdir(parents=True, exist_ok=True)
    return subprocess.Popen(
        [str(part) for part in [*(command or begin), *args]], env={**os.environ, **env}, cwd=folder,
        stdin=subprocess.DEVNULL, stdout=(folder / "stdout").open("w"), stderr=(folder / "stderr").open("w"),
        preexec_fn=(lambda: os.sched_setaffinity(0, cpus)) if cpus else None,
    )


def finish(process, args, folder, timeout=60):
    """Waits for a started tool; its processor time comes from the kernel's account of the ended process."""
    overdue = threading.Timer(timeout, process.kill)
    overdue.start()
    _, status, usage = os.wait4(process.pid, 0)
    overdue.cancel()
    code = process.returncode = os.waitstatus_to_exitcode(status)
    out, err = ((folder / name).read_text(errors="replace") for name in ("stdout", "stderr"))
    assert code != -9, f"{args} did not end within {timeout} s:\n{out}{err}"
    return Run(list(args), code, out, err, folder, usage.ru_utime + usage.ru_stime)


def run(tool, args, folder, timeout=60, command=None, cpus=None):
    """Runs a tool to its end in `folder`."""
    return finish(start(tool, args, folder, command, cpus), args, folder, timeout)


# --- texts -------------------------------------------------------------------------------------------------


def layout(text, delayed=False):
    """The report with every measured number replaced, as a list of lines. Of lines that are there by chance only
    those are kept that the caller waits for."""
    lines = []
    for block, line in numbered_blocks(BEYOND.sub("", text)):
        by_chance = OVERLOAD.match(line) or (not delayed and DELAY.match(line))
        if not by_chance:
            lines.append(line if block == 0 or KEPT.match(line) else hide_numbers(line))
    # After a warning about delays the real tool prints two decimals everywhere.
    return [re.sub(r"^(Request Rate: \d+(?:\.\d*[1-9])?)\.?0+\b", r"\1", line) if "." in line else line for line in lines]


def layout_among_bodies(text):
    """The words of a report that has requests and responses between its words, every number replaced. perf_analyzer
    prints them from its own threads, in pieces: where in a line a body stands, and which line has whose line break,
    is chance."""
    report = BODY_TITLE.sub("", BEYOND.sub("", without_objects(text)))
    return NUMBER.sub("#", OVERLOAD.sub("", report)).split()


def without_objects(text):
    """The text without the JSON objects in it."""
    kept, decoder = [], json.JSONDecoder()
    while (start := text.find('{"')) >= 0:
        kept.append(text[:start])
        text = text[decoder.raw_decode(text, start)[1]:]
    return "".join([*kept, text])


def numbered_blocks(text):
    """(number of the block of lines, line): block 0 is the settings, up to the first empty line."""
    block = 0
    for line in text.splitlines():
        block += not line
        yield block, line


def hide_numbers(line):
    footer = FOOTER.match(line)
    if footer:
        return footer[1] + NUMBER.sub("#", footer[2])
    return NUMBER.sub("#", line)


def messages(text):
    """Lines for the user on standard error, without the usage text that follows a wrong option."""
    usage = USAGE.search(text)
    lines = (text[:usage.start()] if usage else text).splitlines()
    told = []
    for line in map(hide_paths, lines):
        # How many workers meet an error before the end is chance.
        line = re.sub(r"^Thread \[\d+\]", "Thread [#]", line)
        if line and line not in told and not BY_CHANCE.match(line):
            told.append(line)
    return told


def told(text):
    """Returns the lines of the real tool's standard error that ours must print."""
    return [line for line in messages(text) if not LEFT_OUT.match(line)]


def missing_and_added(ours, wanted):
    """Returns the lines of `wanted`, which the real tool prints, that ours does not print, and the lines that ours adds
    without a reason. A line of ours may go on after the text of the real one: where in the data, what to do."""
    kept = [line for line in told(ours) if not ADDED.match(line)]
    if STAND_IN:
        return [line for line in wanted if line not in kept] + [line for line in kept if line not in wanted]
    for old, new in REWORDED.items():
        wanted = [line.replace(old, new) for line in wanted]
    missing = [line for line in wanted if not any(other.startswith(line) for other in kept)]
    return missing + [f"added: {line}" for line in kept if not any(line.startswith(other) for other in wanted)]


def hide_paths(line):
    """The program's own name stands before the parser's messages."""
    return re.sub(r"^\S*(perf_analyzer|galatea)( perf)?: ", "PROGRAM: ", line)


# --- the report as a dictionary -----------------------------------------------------------------------------


def parse_report(text):
    """{"settings": [lines], "points": [point], "footer": {load: (throughput, latency)}}; a point is {"load": text,
    "passes": [lines], "client": fields, "server": fields, "models": {name: fields}}."""
    settings, points, footer = [], [], {}
    section = None
    for block, line in numbered_blocks(text):
        found = FOOTER.match(line)
        if block == 0:
            settings.append(line)
        elif found:
            numbers = re.search(r"throughput: (\S+) infer/sec, latency (\d+) usec", found[2])
            footer[found[1]] = float(numbers[1]), int(numbers[2])
        elif line.startswith(("Request concurrency: ", "Request Rate: ")) or (line and not points and line.startswith("  ")):
            points.append({"load": line, "passes": [], "client": {}, "server": {}, "models": {}})
            section = None
        if not points or found:
            continue
        section = parse_line(points[-1], section, line)
    return {"settings": settings, "points": points, "footer": footer}


def parse_line(point, section, line):
    """Puts one line into its place in the point; the section the next line belongs to."""
    if line.startswith("  Pass ["):
        point["passes"].append(line)
        return section
    if line.strip() in ("Client:", "Server:"):
        return point[line.strip(" :").lower()]
    model = re.match(r"\s+(\S+), version: (\S*)$", line)
    if model:
        return point["models"].setdefault(model[1], {})
    if section is not None and ": " in line.strip():
        name, value = line.strip().split(": ", 1)
        section[name] = [float(n) for n in re.findall(r"-?\d+(?:\.\d+)?(?:e[+-]?\d+)?", value)]
    return section


def throughput(run):
    """infer/s of every point of the report, in its order."""
    return [point["client"]["Throughput"][0] for point in run.report()["points"]]


# --- files ---------------------------------------------------------------------------------------------------


def parse_csv(path):
    """(columns, rows as dictionaries)."""
    with path.open(newline="") as file:
        rows = list(csv.reader(file))
    columns, rows = rows[0], [row for row in rows[1:] if row]
    assert all(len(row) == len(columns) for row in rows), rows
    return columns, [dict(zip(columns, row)) for row in rows]


def kind_of_cell(column, text):
    """What is in a CSV cell: a whole number, a number, pairs of a device and a value, nothing, or text. Rates may
    happen to be whole."""
    if "Second" in column or "Throughput" in column:
        return "number" if re.fullmatch(r"[\d.]+(e[+-]?\d+)?", text) else "text"
    for kind, pattern in (("nothing", r""), ("whole", r"\d+"), ("devices", r"([^:;]+:[^:;]+;)+")):
        if re.fullmatch(pattern, text):
            return kind
    return "text"


def profile_shape(profile):
    """Keys and types of a profile export. Whether a request still waits for its response at the end is chance.
    Two things of the real tool's are not held against ours: outputs of the empty last response of a stream (its are
    whatever the memory held, ours has none), and several strings run together with their lengths in one."""
    for experiment in profile["experiments"]:
        requests = [r for r in experiment["requests"] if r["response_timestamps"]]
        for request in requests:
            assert len(request["response_outputs"]) == len(request["response_timestamps"])
            for tensors in (request["request_inputs"], *request["response_outputs"]):
                tensors.update({name: "" for name, value in tensors.items() if strings(value)})
            if len(request["response_outputs"]) > 1:
                request["response_outputs"].pop()
        experiment["requests"] = requests
    return schema(profile)


def strings(value):
    return isinstance(value, list) and all(isinstance(inner, str) for inner in value)


def schema(value):
    """The shape of a JSON value: keys and types; a list is the union of its elements."""
    if isinstance(value, dict):
        return {key: schema(inner) for key, inner in value.items()}
    if isinstance(value, list):
        kinds = []
        for inner in map(schema, value):
            if inner not in kinds:
                kinds.append(inner)
        return kinds
    return {bool: "bool", int: "int", float: "float", str: "text"}.get(type(value), "null")
