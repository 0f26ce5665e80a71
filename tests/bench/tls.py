"""What TLS costs a request on connections that are kept: the same server twice in one run, with it and without."""

import contextlib
import functools
import itertools
import tempfile
from pathlib import Path

import certificates
import clients
import measure
import servers
from repositories import copy_example

# At 16 in flight the load tool, which encrypts too, takes more of the cores than the server: what the server's own share
# costs shows where both servers are asked equally often.
LOADS = {
    "concurrency 16": ["--concurrency-range", 16],
    "5,000 requests/s": ["--request-rate-range", 5000, "--max-threads", 4],
}
GOAL = "<= 1.10"


@contextlib.contextmanager
def running():
    """Two servers with `simple`: (plain, with TLS, flags of the load tool for either protocol)."""
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        copy_example(folder / "models", "simple")
        authority = certificates.Authority(folder)
        pair = authority.issue()
        tls = [
            "--grpc-use-ssl=true", f"--grpc-server-cert={pair.certificate}", f"--grpc-server-key={pair.key}",
            f"--https-cert={pair.certificate}", f"--https-key={pair.key}",
        ]
        plain, encrypted = (
            stack.enter_context(servers.galatea(folder / "models", *flags)) for flags in ([], tls)
        )
        trust = {
            "http": ["--ssl-https-ca-certificates-file", authority.certificate],
            "grpc": ["--ssl-grpc-use-ssl", "true", "--ssl-grpc-root-certifications-file", authority.certificate],
        }
        yield plain, encrypted, trust


def address(server, protocol, scheme):
    port = (server.http if protocol == "http" else server.grpc).rsplit(":", 1)[1]
    return f"{scheme if protocol == 'http' else ''}localhost:{port}"


def requests(server):
    """Successful inferences so far, by the page of metrics, which is not encrypted."""
    page = clients.ask(server.metrics, "GET", "/metrics")[2].decode()
    lines = [line for line in page.splitlines() if line.startswith("nv_inference_request_success{")]
    return sum(float(line.rsplit(" ", 1)[1]) for line in lines)


def run(server, protocol, url, load, seconds):
    before, count = server.cpu_seconds(), requests(server)
    report = servers.perf_analyzer(
        "-m", "simple", "-u", url, "-i", protocol, *load,
        "-p", int(seconds * 1000), "-s", "999", "-r", "3",
    )
    count = requests(server) - count
    return {
        "infer/s": measure.number(r"Throughput: ([\d.]+) infer/sec", report),
        "p50 us": measure.number(r"p50 latency: (\d+) usec", report),
        "p99 us": measure.number(r"p99 latency: (\d+) usec", report),
        "CPU us/req": (server.cpu_seconds() - before) * 1e6 / max(count, 1),
    }


def compared(args):
    rows, raw = [], []
    with running() as (plain, encrypted, trust):
        for protocol, (load, flags) in itertools.product(("http", "grpc"), LOADS.items()):
            urls = {"plain": (plain, ""), "TLS": (encrypted, "https://")}
            cases = {
                name: functools.partial(
                    run, server, protocol, address(server, protocol, scheme),
                    [*flags, *(trust[protocol] if name == "TLS" else [])], args.seconds,
                )
                for name, (server, scheme) in urls.items()
            }
            medians, runs = measure.interleaved(args.rounds, cases)
            what = f"simple over TLS, {protocol}, {load}"
            ratio = medians["TLS"]["CPU us/req"] / medians["plain"]["CPU us/req"]
            medians["TLS"]["other"] = f"CPU x {ratio:.2f}"
            rows += [
                {"what": what, "server": name, **figures, "goal": f"CPU x {GOAL}" if name == "TLS" else None}
                for name, figures in medians.items()
            ]
            raw.append({"what": what, "runs": runs})
    return rows, raw
