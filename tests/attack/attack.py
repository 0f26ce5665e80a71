"""Plays what a stranger can send against a server and prints one row per attack.

Each attack has a fresh server, on cores and in a memory cgroup of its own where the machine allows. Beside the
attacker another client asks for an inference and for health all the time. A row tells memory, descriptors and threads
of the server before, at their peak and after, the other client's latency during the attack, and how it ended.
"""

import argparse
import importlib
import json
import os
import resource
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "python"))

import bystander  # noqa: E402
import json_documents  # noqa: E402
import limits  # noqa: E402
import raw_http  # noqa: E402
import servers  # noqa: E402
import table  # noqa: E402
import watch  # noqa: E402
from registry import ATTACKS, Achieved  # noqa: E402
from target import Target  # noqa: E402

# Each puts its attacks on the list, in this order.
for module in ("json_documents", "grpc_messages", "http_bodies", "http2_floods", "http_connections", "http_progress", "overrides", "loads", "access", "platforms", "model_faults", "policies"):
    importlib.import_module(module)

QUIET_SECONDS = 2.0
SETTLE_SECONDS = 20
LEAST_SECONDS = 1.5
WARM_UP = ("/v2/health/ready", "/v2/models/simple/stats", "/v2")


def warm_up(target):
    """What a server makes at its first request is not the attack's doing."""
    for path in WARM_UP:
        target.ask("GET", path)
    target.ask("POST", "/v2/repository/index", {})
    target.load("vector")
    large = raw_http.post("/v2/models/vector/infer", json_documents.large(1))
    raw_http.together(8, lambda _: raw_http.exchange(target.http, large))
    for model in target.attack.loads:
        status, text = target.load(model)
        assert status == 200, f"{model}: {text}"


def played(target, attack):
    """(note, what it achieved or None)"""
    try:
        return attack.play(target) or "", None
    except Achieved as achieved:
        return "", str(achieved)
    except Exception as error:  # the server may be gone, which the row says
        return f"attacker: {type(error).__name__}: {str(error)[:160]}", None


def row(kind, label, program, attack, limit, is_before):
    """Plays one attack against one server."""
    begin = time.monotonic()
    target = Target(kind, program, attack, limit, is_before)
    try:
        found = measured(target, attack, limit)
    finally:
        exit_status = target.stop()
        target.remove()
    found["exit"] = exit_status
    return {"attack": attack.name, "what": attack.what, "server": label, **found, "seconds": time.monotonic() - begin}


def measured(target, attack, limit):
    warm_up(target)
    other = bystander.Bystander(target.server.http, target.server.metrics)
    try:
        quiet = time.monotonic()
        time.sleep(QUIET_SECONDS)
        before = watch.use_of(target.pid)
        assert before is not None, "the server ended before the attack\n" + target.server.text()[-300:]
        watcher = watch.Watcher(target.pid, None if target.group.folder else limit)
        watcher.start()
        target.group.forget_peak()
        cpu, start = watch.cpu_seconds(target.pid), time.monotonic()
        note, achieved = played(target, attack)
        # A single request is over before the other client has asked; what it does then counts as well.
        time.sleep(max(0.0, start + LEAST_SECONDS - time.monotonic()))
        end = time.monotonic()
        cpu = watch.cpu_seconds(target.pid) - cpu if target.is_alive() else None
        peak = watcher.stop()
        after, settle = watch.settled(target.pid, lambda now: not table.kept(before, now), SETTLE_SECONDS)
        alive = target.is_alive() and after is not None
        serves = alive and target.ask("GET", "/v2/models/simple/ready")[0] == 200
        return {
            "before": vars(before), "peak": vars(peak), "after": vars(after) if alive else None,
            "settle": settle, "alive": alive, "serves": serves, "achieved": achieved, "note": note,
            "group peak": target.group.peak_mb(), "cpu": cpu, "attack seconds": end - start, "goals": attack.goals,
            "quiet": {what: other.latency(what, quiet, start) for what in bystander.PAUSES},
            "during": {what: other.latency(what, start, end) for what in bystander.PAUSES},
        }
    finally:
        other.stop()


def prepare_attacker():
    """Many sockets, and no core of the server's."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 65536 if hard == resource.RLIM_INFINITY else min(65536, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    divided = limits.cores()
    if divided:
        os.sched_setaffinity(0, divided[1])
    return divided


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", help="the program to attack; default: the newest build")
    parser.add_argument("--before", help="an earlier build: the same attacks are played against it as well")
    parser.add_argument("--triton", action="store_true", help="and against the real Triton, where both can be attacked so")
    parser.add_argument("--others-only", action="store_true", help="leave our newest build out")
    parser.add_argument("--limit", type=int, default=400, metavar="MB", help="memory of our server; default 400")
    parser.add_argument("--others-limit", type=int, default=3000, metavar="MB", help="memory of the others; default 3000")
    parser.add_argument("--list", action="store_true", help="name the attacks and end")
    parser.add_argument("names", nargs="*", metavar="NAME", help="attacks to play; default: all")
    args = parser.parse_args()
    unknown = [name for name in args.names if name not in ATTACKS]
    if args.list or unknown:
        print("\n".join(f"{a.name:28} {a.what}" for a in ATTACKS.values()))
        sys.exit(f"no attack {', '.join(unknown)}" if unknown else 0)
    run(args)


def contestants(args):
    """(kind, label, program, limit in bytes, is it the earlier build)"""
    megabyte = 1024 * 1024
    if not args.others_only:
        yield "galatea", "galatea", args.server or servers.galatea_binary(), args.limit * megabyte, False
    if args.before:
        yield "galatea", "before", args.before, args.others_limit * megabyte, True
    if args.triton and servers.has_triton():
        yield "triton", "Triton 2.51", None, args.others_limit * megabyte, False


def run(args):
    everything = list(contestants(args))
    divided = prepare_attacker()
    print(f"cores of the server: {divided[0] if divided else 'all, shared with the attackers'}", file=sys.stderr)
    rows = []
    for name in args.names or ATTACKS:
        attack = ATTACKS[name]
        for kind, label, program, limit, is_before in everything:
            if kind == "triton" and not attack.triton:
                continue
            print(f"playing: {name} against {label} ...", file=sys.stderr, flush=True)
            try:
                rows.append(row(kind, label, program, attack, limit, is_before))
            except AssertionError as error:
                rows.append({"attack": name, "what": attack.what, "server": label, "did not start": str(error)[-400:]})
            print(table.line(table.cells(rows[-1])), file=sys.stderr, flush=True)
    table.show(rows)
    out = servers.ROOT / "target/attack"
    out.mkdir(parents=True, exist_ok=True)
    file = out / time.strftime("%Y%m%d-%H%M%S.json")
    file.write_text(json.dumps({"cores": divided, "limit MB": args.limit, "rows": rows}, indent=1))
    print(f"\nraw figures: {file.relative_to(servers.ROOT)}")
    sys.exit(1 if any(table.verdict(r) != "held" for r in rows if r["server"] == "galatea") else 0)


if __name__ == "__main__":
    main()
