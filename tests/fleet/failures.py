"""Plays of hosts that fail: gone, stopped, cut off, answering 500, slow."""

import contextlib

import envoy
from callers import Callers
from hosts import FAILING, Fleet, vector_config, wait_until_healthy
from report import Report
from waiting import eventually

# A play goes on for so many requests between two events.
STEADY = 200


class Gone:
    """Killed by the system, and started again."""

    name = "killed"
    begin = staticmethod(lambda host: host.kill())
    end = staticmethod(lambda host: host.comes_back())


class Stopped:
    """Stands still with its connections open, as a machine that swaps does."""

    name = "stopped"
    begin = staticmethod(lambda host: host.pause())
    end = staticmethod(lambda host: host.resume())


class CutOff:
    """Runs, but nothing passes between it and Envoy, and nobody is told."""

    name = "cut off"
    begin = staticmethod(lambda host: host.cut())
    end = staticmethod(lambda host: host.mend())


KINDS = (Gone, Stopped, CutOff)


@contextlib.contextmanager
def envoy_before(fleet, *words, change=None):
    """Envoy as `galatea deploy envoy` sets it up, when it has seen all hosts."""
    config = envoy.deployed(fleet.envoy_hosts(), *words)
    if change:
        change(config)
    with envoy.Envoy(config) as proxy:
        wait_until_healthy(proxy, len(fleet.hosts))
        yield proxy


def without_retries(config):
    """Takes the policy of retries out of all routes."""
    for listener in config["static_resources"]["listeners"]:
        manager = listener["filter_chains"][0]["filters"][0]["typed_config"]
        for host in manager["route_config"]["virtual_hosts"]:
            for route in host["routes"]:
                route["route"].pop("retry_policy")


def fail_and_return(folder, requests=5000, protocol="http", retries=True):
    """One of three hosts is killed, stopped and cut off under 16 callers, and returns each time."""
    report = Report(f"one of three fails and returns, {protocol}, {'with' if retries else 'without'} retries")
    with Fleet(folder, is_linked=True) as fleet, envoy_before(fleet, change=None if retries else without_retries) as proxy:
        with Callers(proxy.address(protocol), protocol) as callers:
            callers.more(STEADY)
            for number, kind in enumerate(KINDS):
                host, before, fates = fleet.hosts[number], callers.count, dict(callers.fates)
                kind.begin(host)
                eventually("Envoy has noticed", lambda: not is_used(proxy, host))
                kind.end(host)
                wait_until_healthy(proxy, 3)
                callers.more(STEADY)
                bad = sum(count - fates.get(fate, 0) for fate, count in callers.fates.items() if fate != "right")
                report.row(f"{kind.name}: requests, not answered, longest", f"{callers.count - before}, {bad}, {callers.longest(before):.0f} ms")
            callers.reach(requests)
    if retries:
        report.all_right("all requests", callers)
    else:
        report.row("all requests", callers.told())
        report.must("wrong answers", callers.fates["wrong"] == 0, callers.fates["wrong"])
    return report


def hangs(folder, protocol="http", requests=3000):
    """A host stops for good, with requests of all callers at it: others answer them after --try-timeout-secs."""
    report = Report(f"one of three hangs, {protocol}, with a time-out of a second")
    with Fleet(folder) as fleet, envoy_before(fleet, "--try-timeout-secs=1") as proxy:
        with Callers(proxy.address(protocol), protocol) as callers:
            callers.more(STEADY)
            fleet.hosts[0].pause()
            callers.more(requests)
            report.row("longest", f"{callers.longest():.0f} ms")
    report.all_right("all requests", callers)
    return report


def is_used(proxy, host):
    """Whether Envoy takes the host for healthy, over both protocols."""
    clusters = proxy.clusters()
    return not any(
        clusters[name][host.addresses[name]]["health_status"].get("failed_active_health_check") for name in ("http", "grpc")
    )


def errors_and_slowness(folder, requests=5000):
    """One of three hosts answers 500, and is ejected until it is well; then it is slow, and gets few until it is not."""
    report = Report("one of three answers 500, then is slow")
    with Fleet(folder) as fleet, envoy_before(fleet) as proxy:
        host = fleet.hosts[0]
        key = host.addresses["http"]

        def is_ejected():
            return bool(proxy.clusters()["http"][key]["health_status"].get("failed_outlier_check"))

        def share():
            weights = proxy.weights("http")
            return weights[key] / sum(weights.values())

        with Callers(proxy.address("http")) as callers:
            callers.more(STEADY)
            host.change("failing", FAILING)
            eventually("it is ejected", is_ejected)
            host.change("identity", host.config)
            eventually("it is back", lambda: not is_ejected())
            callers.more(STEADY)
            failed = callers.fates["failed"]
            # Envoy counts errors in a row; the callers' requests that are under way when it has seen five may fail too.
            report.must("requests that got its 500", 5 <= failed <= 5 + len(callers.threads), failed)
            host.change("identity", vector_config(delay_ms=40))
            eventually("it gets few", lambda: share() < 0.1)
            report.row("its weight while a request takes 40 ms, not 2", f"{100 * share():.1f} %")
            host.change("identity", host.config)
            eventually("it gets its part", lambda: share() > 0.25)
            report.row("its weight afterwards", f"{100 * share():.1f} %")
            callers.reach(requests)
        callers.fates["failed"] -= failed
        report.must("all others", callers.are_right() or set(+callers.fates) == {"right"}, callers.told())
    return report
