"""A play of three hosts with unequal processors: which share each gets, and what a request waits, by the policy of Envoy."""

import os
import re
import subprocess
from dataclasses import dataclass

import groups
import servers
from failures import envoy_before
from hosts import Fleet
from report import Report
from repositories import identity_config, write_model
from waiting import eventually

PARTS = (1, 0.5, 0.25)
# Of one processor for the first host. Three such groups leave room for Envoy and the load.
LARGEST = 0.4
# The part of the whole capacity that the load asks for.
LOAD = 0.7
# Before figures are taken, and while.
SETTLING, SECONDS = 10, 30
# How far a share may be from the part of the capacity, and the p99 from that of round robin.
TOLERANCE, P99_RATIO = 0.05, 0.5
NAME = "envoy.extensions.load_balancing_policies"
POLICIES = {
    "by load": None,
    "round robin": {"name": "envoy.load_balancing_policies.round_robin", "typed_config": {"@type": f"type.googleapis.com/{NAME}.round_robin.v3.RoundRobin"}},
    "least request": {"name": "envoy.load_balancing_policies.least_request", "typed_config": {"@type": f"type.googleapis.com/{NAME}.least_request.v3.LeastRequest"}},
}
# Computes for four milliseconds of a processor, however long that takes.
BURNS = '''
import time

import triton_python_backend_utils as pb


class TritonPythonModel:
    def execute(self, requests):
        answers = []
        for request in requests:
            end = time.thread_time() + 0.004
            while time.thread_time() < end:
                pass
            answers.append(pb.InferenceResponse([pb.Tensor("OUTPUT0", request.inputs()[0].as_numpy())]))
        return answers
'''
ONE = "instance_group [ { count: 1 kind: KIND_CPU } ]\n"
STAND_IN_MS = 8


def write_burning(models, number):
    write_model(models, "vector", "galatea", "python", identity_config("TYPE_INT64", "1", more=ONE), {"1/model.py": BURNS})


def write_waiting(models, number):
    """Stands in for a processor: a request takes a time that is inverse to the host's part."""
    delay = int(STAND_IN_MS / PARTS[number - 1])
    more = f'parameters {{ key: "execute_delay_ms" value {{ string_value: "{delay}" }} }}\n' + ONE
    write_model(models, "vector", "galatea", "identity", identity_config("TYPE_INT64", "1", more=more))


@dataclass
class Measured:
    """What the load tool reports: requests a second, and the latency in milliseconds."""

    rate: float
    mean: float
    p99: float


class Load:
    """The load tool at work on the model at this address. `measured` waits for its end."""

    def __init__(self, address, *load):
        # The version is named, because the tool compares the statistics of two hosts, and would find it idle.
        command = [servers.galatea_binary(), "perf", "-m", "vector", "-x", "1", "-i", "grpc", "-u", address, "-a", "--percentile=99", *load]
        self.process = subprocess.Popen([str(part) for part in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def measured(self):
        text, _ = self.process.communicate(timeout=300)
        assert self.process.returncode == 0, text

        def figure(pattern):
            found = re.search(pattern, text)
            assert found, text
            return float(found[1])

        return Measured(figure(r"Throughput: ([\d.]+)"), figure(r"Avg gRPC time: (\d+)") / 1000, figure(r"p99 latency: (\d+)") / 1000)


def capacities(fleet):
    """Requests a second of each host when it is never idle."""
    return [Load(host.addresses["grpc"], "--concurrency-range=4", "--request-count=300").measured().rate for host in fleet.hosts]


def requests_of(proxy, fleet):
    """The number of requests that each host has got so far."""
    hosts = proxy.clusters()["grpc"]
    return [sum(int(c.get("value", 0)) for c in hosts[host.addresses["grpc"]]["stats"] if c["name"] == "rq_total") for host in fleet.hosts]


def set_policy(policy):
    def change(config):
        for cluster in config["static_resources"]["clusters"]:
            if cluster["name"] == "grpc" and policy:
                cluster["load_balancing_policy"] = {"policies": [{"typed_extension_config": policy}]}

    return change


def under(policy, fleet, rate, seconds):
    """The shares and the figures of a load at this policy, after some seconds in which weights settle."""
    with envoy_before(fleet, change=set_policy(POLICIES[policy])) as proxy:
        # Without a pause between them: Envoy forgets the weights of hosts that are idle.
        first, counted = int(rate * SETTLING), int(rate * seconds)
        load = Load(proxy.address("grpc"), f"--request-rate-range={rate:.1f}", "--request-distribution=poisson",
                    f"--warmup-request-count={first}", f"--request-count={counted}")
        eventually("the weights have settled", lambda: sum(requests_of(proxy, fleet)) >= first)
        before = requests_of(proxy, fleet)
        found = load.measured()
        got = [now - then for now, then in zip(requests_of(proxy, fleet), before)]
    return [count / sum(got) for count in got], found


class InGroups:
    """Puts the processes of each host into a control group with its part, for a block."""

    def __init__(self, fleet):
        self.groups = [groups.Group(f"galatea-fleet-{os.getpid()}-{number}", LARGEST * part) for number, part in enumerate(PARTS)]
        self.fleet = fleet

    def __enter__(self):
        for group, host in zip(self.groups, self.fleet.hosts):
            group.add([host.server.pid, *servers.descendants(host.server.pid)])

    def __exit__(self, *_):
        self.fleet.stop()
        for group in self.groups:
            eventually("the control group is empty", lambda: not (group.folder / "cgroup.procs").read_text().strip())
            group.remove()


def by_capacity(folder, in_groups=None, seconds=SECONDS):
    """Shares within the tolerance of the capacity, and a p99 of at most a half of that of round robin."""
    in_groups = groups.root() is not None if in_groups is None else in_groups
    how = f"processors of {', '.join(f'{LARGEST * part:g}' for part in PARTS)}" if in_groups else f"{STAND_IN_MS} ms / part in place of processors"
    report = Report(f"shares of three hosts, {how}")
    with Fleet(folder, write=write_burning if in_groups else write_waiting) as fleet:
        if not in_groups:
            compare(report, fleet, seconds)
            return report
        with InGroups(fleet):
            compare(report, fleet, seconds)
    return report


def compare(report, fleet, seconds):
    able = capacities(fleet)
    rate = LOAD * sum(able)
    report.row("requests a second of each host alone", ", ".join(f"{one:.1f}" for one in able))
    report.row("load, requests a second", f"{rate:.1f}")
    found = {}
    for policy in POLICIES:
        shares, figures = under(policy, fleet, rate, seconds)
        found[policy] = figures
        told = ", ".join(f"{100 * share:.1f}" for share in shares)
        report.row(f"{policy}: shares in %, mean and p99 in ms", f"{told}; {figures.mean:.1f}, {figures.p99:.1f}")
        if policy == "by load":
            parts = [one / sum(able) for one in able]
            worst = max(abs(share - part) for share, part in zip(shares, parts))
            report.row("  capacity in %", ", ".join(f"{100 * part:.1f}" for part in parts))
            report.must("  farthest from it, in points", worst <= TOLERANCE, f"{100 * worst:.1f}")
    ratio = found["by load"].p99 / found["round robin"].p99
    report.must("p99 by load, as a part of that of round robin", ratio <= P99_RATIO, f"{ratio:.2f}")
