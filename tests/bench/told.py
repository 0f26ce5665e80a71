"""What it costs to be told everything: the access log, a log in JSON, histograms and level 1 beside a server that is
told nothing, same program, same model, 16 requests at once."""

import contextlib
import statistics
import tempfile
import time
from pathlib import Path

import measure
import servers
from repositories import copy_example

# Name of a row: options of serve; {folder} is a folder of that server's own.
ACCESS = "--access-log={folder}/access"
HISTOGRAMS = "--metrics-config=histogram_latencies=true"
LEVEL_1 = "--log-verbose=1"
TOLD = {
    "nothing": (),
    "access log": (ACCESS,),
    "histograms": (HISTOGRAMS,),
    "level 1, JSON": (LEVEL_1, "--log-format=json", "--log-file={folder}/log"),
    "all": (ACCESS, HISTOGRAMS, LEVEL_1, "--log-format=json", "--log-file={folder}/log"),
}
GOAL = "CPU, infer/s within 3 %"


@contextlib.contextmanager
def running():
    """A server for each row."""
    with contextlib.ExitStack() as stack:
        found = {}
        for name, options in TOLD.items():
            repository, logs = (stack.enter_context(tempfile.TemporaryDirectory()) for _ in range(2))
            copy_example(repository, "simple")
            options = [option.format(folder=logs) for option in options]
            found[name] = stack.enter_context(servers.galatea(repository, *options, wait=False))
            found[name].logs = Path(logs)
            wait_for_addresses(found[name])
        yield found


def wait_for_addresses(server):
    """A log file has the lines that tell them in place of standard output."""
    file = server.logs / "log"
    deadline = time.monotonic() + servers.START_LIMIT
    while len(server.addresses) < 3:
        assert time.monotonic() < deadline, server.text()
        if file.exists():
            server.addresses.update(servers.STARTED.findall(file.read_text()))
        time.sleep(0.05)


def compared(args):
    """Each row, and the median of its ratios to the first of the same round."""
    rows, raw = [], []
    with running() as found:
        for protocol in ("http", "grpc"):
            runs = {
                name: lambda server=server: measure.perf(server, "simple", protocol, 16, args.seconds)
                for name, server in found.items()
            }
            what = f"simple, {protocol}, concurrency 16, told"
            medians, measured = measure.interleaved(args.rounds, runs)
            for name, figures in medians.items():
                rows.append({"what": f"{what} {name}", "server": "galatea", **figures, **compared_with(measured["nothing"], measured[name], name)})
            raw.append({"what": what, "runs": measured})
        assert lines(found["all"].logs / "access") > 1000 and lines(found["all"].logs / "log") > 1000
    return rows, raw


def compared_with(nothing, runs, name):
    if name == "nothing":
        return {}
    cpu, rate = (
        statistics.median(run[key] / other[key] for run, other in zip(runs, nothing)) for key in ("CPU us/req", "infer/s")
    )
    return {"other": f"CPU {cpu:.3f} x, infer/s {rate:.3f} x", "goal": GOAL if name == "all" else None}


def lines(path):
    with path.open("rb") as file:
        return sum(1 for _ in file)
