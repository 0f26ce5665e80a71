"""One table: what a request costs here, side by side with the peers, measured in one run.

CPU per request is user and system time of the server process over the number of requests it answered: on a
small shared machine throughput mostly measures the load tool. Runs of the same row are interleaved between
the servers (A B, B A); rounds in which others used more than a tenth of the machine are measured again. Raw runs go to target/bench/<time>.json.
"""

import argparse
import json
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "python"))

import builds  # noqa: E402
import console  # noqa: E402
import cost  # noqa: E402
import delays  # noqa: E402
import engines  # noqa: E402
import frontends  # noqa: E402
import growth  # noqa: E402
import isolation  # noqa: E402
import libraries  # noqa: E402
import load_tool  # noqa: E402
import many_models  # noqa: E402
import mixed_shapes  # noqa: E402
import models  # noqa: E402
import openvino_served  # noqa: E402
import overload  # noqa: E402
import process  # noqa: E402
import python_models  # noqa: E402
import regions  # noqa: E402
import response_cache  # noqa: E402
import seeds  # noqa: E402
import sequences  # noqa: E402
import servers  # noqa: E402
import tls  # noqa: E402
import stores  # noqa: E402
import told  # noqa: E402
import tensorflow_served  # noqa: E402
import torch_models  # noqa: E402
import traces  # noqa: E402
import traffic  # noqa: E402

SECTIONS = {
    "cost": cost.compared,
    "frontend": frontends.small_requests,
    "large": frontends.large_requests,
    "regions": regions.compared,
    "traces": traces.compared,
    "json": frontends.json_bodies,
    "models": models.saturation,
    "layout": models.default_layout,
    "delay": delays.swept,
    "process": process.start_and_memory,
    "python": python_models.identities,
    "ensemble": python_models.ensembles,
    "bls": python_models.bls,
    "steps": python_models.steps,
    "perf": load_tool.tools,
    "sequence": sequences.compared,
    "seed0": seeds.tagger,
    "torch": torch_models.served,
    "openvino": openvino_served.served,
    "tensorflow": tensorflow_served.served,
    "engines": engines.compared,
    "isolation": isolation.compared,
    "libraries": libraries.compared,
    "told": told.compared,
    "console": console.compared,
    "cache": response_cache.compared,
    "tls": tls.compared,
    "stores": stores.compared,
    "shapes": mixed_shapes.compared,
    "growth": growth.compared,
    "many-models": many_models.compared,
    "traffic": traffic.compared,
    "overload": overload.compared,
}


def table(rows):
    heads = ("what", "server", "infer/s", "p50 us", "p99 us", "CPU us/req", "foreign %", "other", "goal")
    lines = [heads] + [tuple(cell(row.get(head)) for head in heads) for row in rows]
    widths = [max(len(line[i]) for line in lines) for i in range(len(heads))]
    for n, line in enumerate(lines):
        print("| " + " | ".join(value.ljust(width) for value, width in zip(line, widths)) + " |")
        if n == 0:
            print("|" + "|".join("-" * (width + 2) for width in widths) + "|")


def cell(value):
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 1 else f"{value:.3f}"
    return str(value)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--server", help="the program to measure; default: the newest build")
    parser.add_argument("--before", help="an earlier build: only the two builds are compared, in one run")
    parser.add_argument("--rows", nargs="+", metavar="TEXT", help="with --before: only rows that have one of these texts")
    parser.add_argument("--rounds", type=int, default=2, help="how often each measurement is repeated, interleaved")
    parser.add_argument("--seconds", type=float, default=2.0, help="length of one measurement window")
    parser.add_argument("--no-triton", action="store_true", help="leave the real Triton out")
    parser.add_argument("--full", action="store_true", help="section growth: 1,000 models, 10,000 connections, an hour")
    parser.add_argument("--pin", choices=["both", "yes", "no"], default="both", help="section perf: server and load tool on cores of their own")
    parser.add_argument("--concurrency", type=int, nargs="+", default=[1, 4, 16], help="section perf: requests in flight")
    parser.add_argument("sections", nargs="*", metavar="section", help=f"of: {', '.join(SECTIONS)}")
    args = parser.parse_args()
    if args.server:
        servers.os.environ["GALATEA"] = args.server
    if not servers.has_perf_analyzer():
        sys.exit("bench: perf_analyzer is not installed; `cargo xtask setup` says why")
    args.targets = ["galatea"] + (["triton"] if servers.has_triton() and not args.no_triton else [])
    rows, raw = [], []
    sections = {"builds": builds.compared} if args.before else {n: SECTIONS[n] for n in args.sections or SECTIONS}
    for name, section in sections.items():
        print(f"measuring: {name} ...", file=sys.stderr, flush=True)
        section_rows, section_raw = section(args)
        rows += section_rows
        raw += [{"section": name, **run} for run in section_raw]
    table(rows)
    out = servers.ROOT / "target/bench"
    out.mkdir(parents=True, exist_ok=True)
    file = out / time.strftime("%Y%m%d-%H%M%S.json")
    file.write_text(json.dumps({"cpus": servers.os.cpu_count(), "rows": rows, "runs": raw}, indent=1))
    print(f"\nraw runs: {file.relative_to(servers.ROOT)}")


if __name__ == "__main__":
    main()
