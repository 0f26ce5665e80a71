"""Whether a request costs more as a server has more to hold: models, open connections, hours.

    cargo xtask bench growth            in minutes
    cargo xtask bench --full growth     1,000 models, 10,000 connections, an hour

Servers with few and with many models run beside each other and are measured in turn; the ratio quoted is the median of
the ratios within each round. A model here is one that adds and subtracts, with one instance, so that what is measured is
the server.
"""

import contextlib
import socket
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

import measure
import quiet
import servers
from repositories import add_sub_config, write_model

GOAL = "CPU <= 1.05 x"
CALLERS = 16
MODELS = {False: (1, 10, 100), True: (1, 10, 100, 1000)}
CONNECTIONS = {False: (10, 1000), True: (10, 1000, 10_000)}
# How long a server is under full load, and in how many parts it is looked at.
SECONDS = {False: 60, True: 3600}
PARTS = 6


def own_perf(server, seconds):
    """A run of our load tool against the first model over HTTP, which leaves most of the machine to the server."""

    def load():
        command = [servers.galatea_binary(), "perf", "-m", "model0", "-u", server.http, "--concurrency-range", CALLERS,
                   "-p", int(seconds * 1000), "-s", "999", "-r", "3"]
        run = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=120 + 10 * seconds)
        assert run.returncode == 0, run.stdout + run.stderr
        return run.stdout

    report, cpu = measure.cpu_of(server, "model0", load)
    return {
        "infer/s": measure.number(r"Throughput: ([\d.]+) infer/sec", report),
        "p50 us": measure.number(r"p50 latency: (\d+) usec", report),
        "p99 us": measure.number(r"p99 latency: (\d+) usec", report),
        "CPU us/req": cpu,
    }


def started(stack, models):
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
    config = add_sub_config(more="instance_group [ { count: 1 kind: KIND_CPU } ]\n")
    for number in range(models):
        write_model(folder, f"model{number}", "galatea", "add_sub", config)
    return stack.enter_context(servers.galatea(folder, "--max-connections=16000"))


def rows_of(what, runs, others):
    """The first size is what the others are compared with."""
    first = next(iter(runs))
    rows = []
    for size, done in runs.items():
        pairs = zip(done, runs[first])
        ratio = statistics.median(run["CPU us/req"] / base["CPU us/req"] for run, base in pairs)
        other = f"{others[size]}, CPU {ratio:.3f} x"
        rows.append({"what": f"{what}: {size:,}", "server": "galatea", **measure.median_of(done), "other": other,
                     "goal": GOAL if size != first else None})
    return rows


def in_turn(rounds, servers_by_size, seconds):
    return quiet.rounds_of(rounds, {size: lambda s=server: own_perf(s, seconds) for size, server in servers_by_size.items()})


def models(args):
    with contextlib.ExitStack() as stack:
        found = {count: started(stack, count) for count in MODELS[args.full]}
        memory = {count: f"{server.rss_mb():.0f} MB" for count, server in found.items()}
        runs = in_turn(args.rounds, found, args.seconds)
    return rows_of("models loaded", runs, memory), [{"models": runs}]


def connect(server, count):
    """Connections that have had an answer, and say nothing more."""
    host, port = server.http.split(":")
    held = []
    for _ in range(count):
        connection = socket.create_connection((host, int(port)))
        connection.sendall(b"GET /v2/health/live HTTP/1.1\r\nHost: h\r\n\r\n")
        assert connection.recv(4096).startswith(b"HTTP/1.1 200")
        held.append(connection)
    return held


def connections(args):
    with contextlib.ExitStack() as stack:
        found, memory = {}, {}
        for count in CONNECTIONS[args.full]:
            found[count] = started(stack, 1)
            before = found[count].rss_mb()
            for connection in connect(found[count], count):
                stack.enter_context(connection)
            memory[count] = f"{(found[count].rss_mb() - before) * 1024 / count:.1f} KB a connection"
        runs = in_turn(args.rounds, found, args.seconds)
    return rows_of("connections open", runs, memory), [{"connections": runs}]


def time_under_load(args):
    """The same server in its first and in its last minutes."""
    with contextlib.ExitStack() as stack:
        server = started(stack, 1)
        own_perf(server, args.seconds)
        parts, begin = [], time.monotonic()
        while time.monotonic() - begin < SECONDS[args.full]:
            parts.append({**own_perf(server, SECONDS[args.full] / PARTS / 3), "MB": server.rss_mb()})
    first, last = parts[0], parts[-1]
    cpu, memory = last["CPU us/req"] / first["CPU us/req"], last["MB"] / first["MB"]
    other = f"CPU {cpu:.3f} x, memory {memory:.3f} x ({first['MB']:.0f} -> {last['MB']:.0f} MB)"
    row = {"what": f"under load for {SECONDS[args.full]} s: last part over first", "server": "galatea", **last, "other": other,
           "goal": "both <= 1.05 x"}
    row.pop("MB")
    return [row], [{"parts": parts}]


def compared(args):
    rows, raw = [], []
    for measured in (models, connections, time_under_load):
        more_rows, more_raw = measured(args)
        rows, raw = rows + more_rows, raw + more_raw
    return rows, raw
