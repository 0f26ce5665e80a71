"""One measurement: a load, the server's CPU time during it, and how many requests it answered."""

import json
import re
import statistics
import subprocess

import clients
import quiet
import servers


def answered(server, model):
    found = clients.ask(server.http, "GET", f"/v2/models/{model}/stats")[2]
    return sum(v["inference_stats"]["success"]["count"] for v in json.loads(found)["model_stats"])


def cpu_of(server, model, load):
    """(what `load` returns, CPU microseconds of the server per request answered meanwhile)."""
    before, requests = server.cpu_seconds(), answered(server, model)
    result = load()
    requests = answered(server, model) - requests
    return result, (server.cpu_seconds() - before) * 1e6 / max(requests, 1)


def own_tool(*args, timeout):
    """Runs `galatea perf`; its report as text."""
    command = [servers.galatea_binary(), "perf", *map(str, args)]
    run = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=timeout)
    assert run.returncode == 0, run.stdout
    return run.stdout


def perf(server, model, protocol, concurrency, seconds, *more, tool=servers.perf_analyzer):
    """A run of a load tool as a dictionary: infer/s, p50 us, p99 us, CPU us/req."""
    address = server.grpc if protocol == "grpc" else server.http

    def load():
        return tool(
            "-m", model, "-u", address, "-i", protocol, "--concurrency-range", concurrency,
            "-p", int(seconds * 1000), "-s", "999", "-r", "3", *more, timeout=90 + 20 * seconds,
        )

    report, cpu = cpu_of(server, model, load)
    return {
        "infer/s": number(r"Throughput: ([\d.]+) infer/sec", report),
        "p50 us": number(r"p50 latency: (\d+) usec", report),
        "p99 us": number(r"p99 latency: (\d+) usec", report),
        "CPU us/req": cpu,
    }


def ab(server, model, body, concurrency, requests):
    """A run of ApacheBench (HTTP/1.0, no keep-alive)."""
    url = f"http://{server.http}/v2/models/{model}/infer"

    def load():
        command = ["ab", "-q", "-p", body, "-T", "application/json", "-c", concurrency, "-n", requests, url]
        run = subprocess.run([str(c) for c in command], capture_output=True, text=True, timeout=600)
        assert run.returncode == 0 and "Non-2xx" not in run.stdout, run.stdout + run.stderr
        return run.stdout

    report, cpu = cpu_of(server, model, load)
    return {
        "infer/s": number(r"Requests per second: +([\d.]+)", report),
        "p50 us": 1000 * number(r"50% +(\d+)", report),
        "p99 us": 1000 * number(r"99% +(\d+)", report),
        "CPU us/req": cpu,
    }


def number(pattern, report):
    found = re.search(pattern, report)
    assert found, f"no {pattern} in:\n{report}"
    return float(found[1])


def median_of(runs):
    """The median of every figure over several runs."""
    return {key: statistics.median(run[key] for run in runs) for key in runs[0]}


def interleaved(rounds, cases):
    """Runs {name: callable} in turn in `rounds` quiet rounds; medians and raw runs by name."""
    runs = quiet.rounds_of(rounds, cases)
    return {name: median_of(done) for name, done in runs.items()}, runs
