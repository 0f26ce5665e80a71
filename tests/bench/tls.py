"""What TLS costs a request on connections that are kept: the same server twice in one run, with it and without."""

import contextlib
import tempfile
from pathlib import Path

import certificates
import clients
import measure
import servers
from repositories import copy_example

CONCURRENCY = 16
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


def run(server, protocol, url, more, seconds):
    before, count = server.cpu_seconds(), requests(server)
    report = servers.perf_analyzer(
        "-m", "simple", "-u", url, "-i", protocol, "--concurrency-range", CONCURRENCY,
        "-p", int(seconds * 1000), "-s", "999", "-r", "3", *more,
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
        for protocol in ("http", "grpc"):
            cases = {
                "plain": lambda: run(plain, protocol, address(plain, protocol, ""), [], args.seconds),
                "TLS": lambda: run(
                    encrypted, protocol, address(encrypted, protocol, "https://"), trust[protocol], args.seconds
                ),
            }
            medians, runs = measure.interleaved(args.rounds, cases)
            what = f"simple over TLS, {protocol}, concurrency {CONCURRENCY}"
            ratio = medians["TLS"]["CPU us/req"] / medians["plain"]["CPU us/req"]
            medians["TLS"]["other"] = f"CPU x {ratio:.2f}"
            rows += [
                {"what": what, "server": name, **figures, "goal": f"CPU x {GOAL}" if name == "TLS" else None}
                for name, figures in medians.items()
            ]
            raw.append({"what": what, "runs": runs})
    return rows, raw
