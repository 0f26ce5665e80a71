"""What an answer from the response cache costs: beside a request whose model is run, and beside the cache of the real Triton."""

import contextlib
import tempfile
from pathlib import Path

import measure
import servers
from repositories import EXAMPLES, add_sub_config, copy_example, identity_config, write_model

CACHE = "response_cache { enable: true }\n"
FLAG = "--cache-config=local,size=268435456"


@contextlib.contextmanager
def running(targets):
    """Servers with `simple`, `cached` which is the same with answers from the cache, and `large`; by target."""
    with contextlib.ExitStack() as stack:
        found = {}
        for target in targets:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            write_model(folder, "large", target, "identity", identity_config(more=CACHE))
            if target == "triton":
                write_model(folder, "cached", target, "add_sub", add_sub_config(more=CACHE))
            else:
                copy_example(folder, "simple")
                config = (EXAMPLES / "simple/config.pbtxt").read_text()
                copy_example(folder, "simple", config=config.replace('"simple"', '"cached"') + CACHE, name="cached")
            found[target] = stack.enter_context(servers.TARGETS[target](folder, FLAG))
        yield found


def compared(args):
    rows, raw = [], []
    with running(args.targets) as found:
        ours, theirs = found["galatea"], found.get("triton")
        for protocol in ("http", "grpc"):
            for what, model, concurrency, more in (
                ("small", "cached", 1, ()), ("small", "cached", 16, ()), ("400 KB", "large", 4, ("--shape", "INPUT0:100000")),
            ):
                cases = {"galatea, found": lambda: measure.perf(ours, model, protocol, concurrency, args.seconds, *more)}
                if model == "cached":
                    cases["galatea, executed"] = lambda: measure.perf(ours, "simple", protocol, concurrency, args.seconds)
                if theirs:
                    cases["Triton 2.51, found"] = lambda: measure.perf(theirs, model, protocol, concurrency, args.seconds, *more)
                name = f"response cache, {what}, {protocol}, concurrency {concurrency}"
                medians, runs = measure.interleaved(args.rounds, cases)
                rows += rows_of(name, medians)
                raw.append({"what": name, "runs": runs})
    return rows, raw


def rows_of(name, medians):
    """What is found may cost half of what is executed."""
    rows = [{"what": name, "server": server, **figures} for server, figures in medians.items()]
    if "galatea, executed" in medians:
        executed = medians["galatea, executed"]["CPU us/req"]
        rows[0]["other"] = f"{rows[0]['CPU us/req'] / executed:.2f} of executed"
        rows[0]["goal"] = "<= 0.5 of executed"
    return rows
