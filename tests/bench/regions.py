"""Tensors of 400 KB in shared memory beside the same through the socket, here and with the real Triton, in one run."""

import itertools

import frontends
import measure

LOAD = ["--shape", "INPUT0:100000"]
# The load tool of Triton registers an output of the size that it knows, whatever this option says.
REGION = ["--shared-memory", "system", "--output-shared-memory-size", 400_000]
WAYS = {"socket": [], "region": REGION}
GOAL = "CPU x <= 0.35 of the socket here, <= 0.15 of the region of Triton"


def compared(args):
    rows, raw = [], []
    with frontends.running(args.targets, {"galatea": ["--allow-client-shm=true"]}) as found:
        for protocol in ("http", "grpc"):
            cases = {
                f"{target} by {way}": lambda s=found[target], more=WAYS[way], p=protocol: measure.perf(
                    s, "identity", p, 4, args.seconds, *LOAD, *more
                )
                for target, way in itertools.product(found, WAYS)
            }
            medians, runs = measure.interleaved(args.rounds, cases)
            what = f"identity 400 KB in and out, {protocol}, concurrency 4"
            own = medians["galatea by region"]["CPU us/req"]
            ratios = [
                f"x {own / figures['CPU us/req']:.2f} of {name}" for name, figures in medians.items() if name != "galatea by region"
            ]
            medians["galatea by region"] |= {"other": ", ".join(ratios), "goal": GOAL}
            rows += [{"what": what, "server": name, **figures} for name, figures in medians.items()]
            raw.append({"what": what, "runs": runs})
    return rows, raw
