"""What it costs to look at the console: the CPU of a server that nobody, one page and ten pages watch, at rest with very many
models and while one of them works."""

import contextlib
import statistics
import tempfile
import threading
import time

import measure
import servers
from console_events import Events
from repositories import copy_example, identity_config, write_model

WATCHERS = {"nobody": 0, "one page": 1, "ten pages": 10}
IDLE_MODELS = 2000
GOAL = "CPU, infer/s within 1 %"


@contextlib.contextmanager
def watched(server, count):
    """So many pages read the events meanwhile."""
    pages = [Events(server) for _ in range(count)]
    is_over = threading.Event()

    def read(page):
        while not is_over.is_set() and page.next():
            pass

    readers = [threading.Thread(target=read, args=[page], daemon=True) for page in pages]
    for reader in readers:
        reader.start()
    try:
        yield
    finally:
        is_over.set()
        for reader in readers:
            reader.join()
        for page in pages:
            page.close()
        # The thread that made the events ends some looks later.
        time.sleep(3)


def at_work(server, count, seconds):
    with watched(server, count):
        return measure.perf(server, "simple", "http", 16, seconds)


def at_rest(server, count, seconds):
    """Milliseconds of CPU per second."""
    with watched(server, count):
        time.sleep(2)
        before = server.cpu_seconds()
        time.sleep(seconds)
        return {"CPU ms/s": (server.cpu_seconds() - before) * 1000 / seconds}


def compared(args):
    """Rows for each number of pages, and how they compare to nobody in the same round."""
    rows, raw = [], []
    with tempfile.TemporaryDirectory() as folder:
        copy_example(folder, "simple")
        for number in range(IDLE_MODELS):
            write_model(folder, f"model_{number}", "galatea", "identity", identity_config())
        with servers.galatea(folder) as server:
            for what, case in (("at rest, 2,001 models", at_rest), ("simple, http, concurrency 16", at_work)):
                runs = {
                    name: lambda case=case, count=count: case(server, count, args.seconds) for name, count in WATCHERS.items()
                }
                medians, measured = measure.interleaved(args.rounds, runs)
                for name, figures in medians.items():
                    row = {"what": f"{what}, watched by {name}", "server": "galatea"}
                    rows.append({**row, **figures, **compared_with(measured["nobody"], measured[name])})
                raw.append({"what": what, "runs": measured})
    return rows, raw


def compared_with(nobody, runs):
    if "CPU ms/s" in runs[0]:
        spent = statistics.median(run["CPU ms/s"] for run in runs)
        return {"other": f"{spent:.1f} ms of CPU per second", "goal": "10 more than nobody"}
    if runs is nobody:
        return {}
    cpu, rate = (
        statistics.median(run[key] / other[key] for run, other in zip(runs, nobody)) for key in ("CPU us/req", "infer/s")
    )
    return {"other": f"CPU {cpu:.3f} x, infer/s {rate:.3f} x", "goal": GOAL}
