"""A play of faults of all kinds, drawn by chance from a seed, for as long as it is told."""

import random
import time

import processes
from callers import Callers
from failures import STEADY, CutOff, Gone, Stopped, envoy_before, is_used
from hosts import FAILING, Fleet, vector_config, wait_until_healthy
from report import Report
from waiting import eventually

# A server may keep so much more than after its first requests, in parts of that and in megabytes.
GROWTH, GRACE = 1.25, 24


class Operator:
    """Does one thing after the other to hosts by chance. All hosts are well when it is done."""

    def __init__(self, fleet, proxy, callers, chance):
        self.fleet, self.proxy, self.callers, self.chance = fleet, proxy, callers, chance
        self.done, self.memory = dict.fromkeys(self.kinds(), 0), []

    def kinds(self):
        return {"killed": Gone, "stopped": Stopped, "cut off": CutOff, "restarted": None, "upgraded": None, "new version": None,
                "answers 500": None}

    def act(self):
        name, host = self.chance.choice(list(self.done)), self.chance.choice(self.fleet.hosts)
        self.memory.append(processes.rss_mb(host.server.pid))
        kind = self.kinds()[name]
        if kind:
            kind.begin(host)
            # Sometimes it is over before Envoy has noticed.
            if self.chance.random() < 0.7:
                eventually("Envoy has noticed", lambda: not is_used(self.proxy, host))
            kind.end(host)
        elif name == "restarted":
            host.restart()
        elif name == "upgraded":
            host.upgrade()
        elif name == "new version":
            self.fleet.reload(host)
        else:
            host.change("failing", FAILING)
            self.callers.more(STEADY)
            host.change("identity", host.config)
        self.done[name] += 1
        wait_until_healthy(self.proxy, len(self.fleet.hosts))
        self.callers.more(self.chance.randrange(STEADY, 5 * STEADY))


def random_faults(folder, seed, minutes=1.0):
    """Each request is answered once, by a version that lives, or is refused; memory stays flat."""
    report = Report(f"random faults for {minutes:g} minutes, seed {seed}")
    print(report.title, flush=True)
    chance, end = random.Random(seed), time.monotonic() + 60 * minutes
    # Hosts that wait more than they work leave the machine to the faults.
    with Fleet(folder, is_linked=True, config=vector_config(delay_ms=30)) as fleet, envoy_before(fleet) as proxy:
        with Callers(proxy.address("http"), "http", versions=fleet.versions) as callers:
            callers.more(10 * STEADY)
            begin, envoy_begin = max(processes.rss_mb(host.server.pid) for host in fleet.hosts), processes.rss_mb(proxy.process.pid)
            operator = Operator(fleet, proxy, callers, chance)
            while time.monotonic() < end:
                operator.act()
            last = max(*operator.memory, *(processes.rss_mb(host.server.pid) for host in fleet.hosts))
            envoy_last = processes.rss_mb(proxy.process.pid)
    report.row("faults", ", ".join(f"{count} {name}" for name, count in operator.done.items()))
    report.row("requests", callers.told())
    bad = callers.fates["wrong"] + callers.fates["lost"]
    report.must("wrong or without an answer", bad == 0, bad)
    report.must("failed without a host that answers 500", operator.done["answers 500"] or not callers.fates["failed"], callers.fates["failed"])
    report.must("memory of a server, first and most", last < GROWTH * begin + GRACE, f"{begin:.0f}, {last:.0f} MB")
    report.must("memory of Envoy, first and last", envoy_last < GROWTH * envoy_begin + GRACE, f"{envoy_begin:.0f}, {envoy_last:.0f} MB")
    report.faults += callers.faults if bad else []
    return report
