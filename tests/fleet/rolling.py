"""Plays of an operator who changes one host after the other under load: restarts, upgrades, new versions of a model."""

from callers import Callers
from failures import STEADY, envoy_before
from hosts import Fleet, wait_until_healthy
from report import Report


def change_all(folder, protocol="http", rounds=1):
    """Each host is restarted, upgraded by takeover and given a new version of its model; no request fails."""
    report = Report(f"rolling changes, {protocol}")
    with Fleet(folder) as fleet, envoy_before(fleet) as proxy:
        changes = {"restart": lambda host: host.restart(), "upgrade": lambda host: host.upgrade(), "new version": fleet.reload}
        with Callers(proxy.address(protocol), protocol, versions=fleet.versions) as callers:
            callers.more(STEADY)
            usual = callers.percentile(0.99)
            for name, change in changes.items():
                before = callers.count
                for host in fleet.hosts * rounds:
                    change(host)
                    wait_until_healthy(proxy, len(fleet.hosts))
                    callers.more(STEADY)
                report.row(f"{name}: requests, p99 (before: {usual:.0f} ms)", f"{callers.count - before}, {callers.percentile(0.99, before):.0f} ms")
        report.all_right("all requests", callers)
        report.must("versions at the end", fleet.versions.oldest == 1 + rounds, fleet.versions.oldest)
    return report


# How much longer the slowest requests may take while a server hands over.
P99_RATIO = 2


def upgrade_often(folder, protocol="http", count=100):
    """One server is upgraded by takeover again and again under load: no request fails, and hardly one waits."""
    report = Report(f"{count} upgrades by takeover, {protocol}")
    steady, during = [], []
    with Fleet(folder, count=1) as fleet:
        (host,) = fleet.hosts
        with Callers(host.addresses[protocol], protocol, count=4) as callers:
            for _ in range(count):
                before = callers.count
                callers.more(STEADY)
                begin = callers.count
                host.upgrade()
                callers.more(4)
                steady += callers.seconds[before:begin]
                during += callers.seconds[begin:]
    report.all_right("all requests", callers)
    usual, longest = p99_ms(steady), p99_ms(during)
    report.row("requests and p99 between upgrades", f"{len(steady)}, {usual:.1f} ms")
    report.row("requests and p99 during upgrades", f"{len(during)}, {longest:.1f} ms")
    report.must("one as a part of the other", longest <= P99_RATIO * usual, f"{longest / usual:.2f}")
    return report


def p99_ms(seconds):
    return 1000 * sorted(seconds)[int(0.99 * len(seconds))]
