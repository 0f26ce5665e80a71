"""What traces cost a request of `simple`: none, every thousandth and every request traced to a file, in one run."""

import contextlib
import functools
import itertools
import tempfile
from pathlib import Path

import measure
import servers
from repositories import copy_example

RATES = {"not traced": None, "each 1000th traced": 1000, "each traced": 1}
GOALS = {"each 1000th traced": "CPU x <= 1.02", "each traced": "CPU x <= 1.20"}


@contextlib.contextmanager
def running():
    """Servers with `simple`, by how many of their requests are traced."""
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        copy_example(folder / "models", "simple")
        found = {}
        for name, rate in RATES.items():
            flags = [] if rate is None else [
                "--trace-config=level=TIMESTAMPS", f"--trace-config=rate={rate}", f"--trace-config=triton,file={folder}/{rate}.json",
            ]
            found[name] = stack.enter_context(servers.galatea(folder / "models", *flags))
        yield found


def load(server, protocol, callers, seconds):
    return measure.perf(server, "simple", protocol, callers, seconds, tool=measure.own_tool)


def compared(args):
    rows, raw = [], []
    with running() as found:
        for protocol, callers in itertools.product(("http", "grpc"), (1, 16)):
            cases = {name: functools.partial(load, server, protocol, callers, args.seconds) for name, server in found.items()}
            medians, runs = measure.interleaved(args.rounds, cases)
            what = f"simple, {protocol}, concurrency {callers}"
            base = medians["not traced"]["CPU us/req"]
            for name, figures in medians.items():
                rows.append({"what": what, "server": name, **figures, "other": f"CPU x {figures['CPU us/req'] / base:.3f}", "goal": GOALS.get(name)})
            raw.append({"what": what, "runs": runs})
    return rows, raw
