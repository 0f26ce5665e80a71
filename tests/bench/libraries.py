"""Triton's own Python backend, the untouched `libtriton_python.so`, in our server and in the real one, in one run.

CPU is that of the server and of the stub process that runs the model.
"""

import contextlib
import tempfile

import measure
import python_models
import servers
from repositories import identity_config

LOAD = ["--shape", "INPUT0:16"]
SERVERS = {"libtriton_python.so here": servers.library, "libtriton_python.so in Triton 2.51": servers.triton}
GOAL = "CPU x <= 0.60"


@contextlib.contextmanager
def running():
    """Servers over an identity in Python, by what they are called in the table."""
    with contextlib.ExitStack() as stack:
        found = {}
        for name, start in SERVERS.items():
            folder = stack.enter_context(tempfile.TemporaryDirectory())
            python_models.python_model(folder, "identity", identity_config(), python_models.identity_code())
            found[name] = stack.enter_context(start(folder))
        yield found


def compared(args):
    rows, raw = [], []
    with running() as found:
        for protocol in ("http", "grpc"):
            for concurrency in (1, 16):
                cases = {
                    name: lambda s=server, p=protocol, c=concurrency: measure.perf(s, "identity", p, c, args.seconds, *LOAD)
                    for name, server in found.items()
                }
                medians, runs = measure.interleaved(args.rounds, cases)
                here, there = (medians[name]["CPU us/req"] for name in SERVERS)
                own = medians[next(iter(SERVERS))]
                own |= {"other": f"CPU x {here / there:.2f}", "goal": GOAL}
                what = f"Python identity FP32[16], {protocol}, concurrency {concurrency}"
                rows += [{"what": what, "server": name, **figures} for name, figures in medians.items()]
                raw.append({"what": what, "runs": runs})
    return rows, raw
