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
