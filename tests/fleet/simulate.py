"""A simulation of many replicas behind one proxy: `python tests/fleet/simulate.py [--replicas N] [--plot FILE]`.

It answers what three hosts cannot show: what the policies of Envoy do with 1,000 replicas. Its assumptions:

- A replica executes one request at a time, in order, each in the same time: the inverse of the rate that the play `shares`
  measured for a host alone. A third of the replicas has each of the three rates. In the second table for many replicas, the
  times vary by chance (exponentially) around that.
- Requests come by chance (Poisson) at 70 % of the capacity of all, for 10 seconds before figures are taken and 30 while.
- A report covers the last second: requests that ended, and the load, which is the part of the second with work plus the mean
  number of requests that waited. Replicas report once a second, each at a time of its own. A report arrives `delay` seconds old.
- The proxy computes weights once a second, like Envoy. Networks, proxies and clients take no time. Nothing fails.
"""

import argparse
import collections
import heapq
import itertools
from dataclasses import dataclass, field
from pathlib import Path

import balancers
import plot

# Requests a second of the hosts of the play `shares`, each alone.
MEASURED = (59.9, 33.3, 16.6)
LOAD, SETTLING, SECONDS, PERIOD = 0.7, 10, 30, 1.0


@dataclass
class Replica:
    """A replica, its requests, and what it has done since its last report."""

    service: float
    free_at: float = 0.0
    ends: collections.deque = field(default_factory=collections.deque)
    # Requests that have begun to wait: the time of their arrival, of their start and of their end.
    recent: collections.deque = field(default_factory=collections.deque)
    count: int = 0

    def in_progress(self, now):
        while self.ends and self.ends[0] <= now:
            self.ends.popleft()
        return len(self.ends)

    def take(self, now, is_told, part):
        """Queues a request that takes this part of the usual time; returns when it ends."""
        start = max(now, self.free_at)
        self.free_at = start + self.service * part
        self.ends.append(self.free_at)
        if is_told:
            self.recent.append((now, start, self.free_at))
        return self.free_at

    def report(self, now):
        """Requests that ended in the last second, and the load."""
        begin = now - PERIOD
        while self.recent and self.recent[0][2] <= begin:
            self.recent.popleft()
        ended, busy, waited = 0, 0.0, 0.0
        for arrival, start, end in self.recent:
            ended += end <= now
            busy += max(0.0, min(end, now) - max(start, begin))
            waited += max(0.0, min(start, now) - max(arrival, begin))
        return ended / PERIOD, (busy + waited) / PERIOD


@dataclass
class Figures:
    """Milliseconds of requests, and the share of each kind of replica in percent."""

    mean: float
    p99: float
    shares: list


def simulate(policy, replicas, delay=0.0, seed=37, is_varied=False, rates=MEASURED):
    """Plays the load against so many replicas."""
    chance = balancers.chance_of(seed)
    all_replicas = [Replica(1 / rates[number % len(rates)]) for number in range(replicas)]
    balancer = balancers.POLICIES[policy](replicas, chance)
    rate = LOAD * sum(1 / replica.service for replica in all_replicas)
    events = Events(all_replicas, balancer, delay, chance)
    now, times, counts = 0.0, [], [0] * len(rates)
    while now < SETTLING + SECONDS:
        now += chance.expovariate(rate)
        events.play_until(now)
        chosen = balancer.choose(now, all_replicas)
        end = all_replicas[chosen].take(now, balancer.is_told, chance.expovariate(1) if is_varied else 1)
        if now >= SETTLING:
            times.append(end - now)
            counts[chosen % len(rates)] += 1
    times.sort()
    return Figures(1000 * sum(times) / len(times), 1000 * times[int(0.99 * len(times))], [100 * count / len(times) for count in counts])


class Events:
    """Reports that replicas make, that arrive, and the computing of weights, in the order of time."""

    def __init__(self, replicas, balancer, delay, chance):
        self.replicas, self.balancer, self.delay = replicas, balancer, delay
        # (time, order at that time, number of the replica, its report that arrives).
        self.queue, self.order = [], itertools.count()
        if balancer.is_told:
            for number in range(len(replicas)):
                self.add(PERIOD * (1 + chance.random()), number)
            # In place of a replica, the proxy.
            self.add(PERIOD, len(replicas))

    def add(self, time, number, report=None):
        heapq.heappush(self.queue, (time, next(self.order), number, report))

    def play_until(self, now):
        while self.queue and self.queue[0][0] <= now:
            time, _, number, report = heapq.heappop(self.queue)
            if number == len(self.replicas):
                self.balancer.schedule()
            elif report is None:
                self.add(time + self.delay, number, self.replicas[number].report(time))
            else:
                self.balancer.report(number, *report)
                continue
            self.add(time + PERIOD, number)


# (name, policy, age of reports), each a row.
CASES = [
    ("round robin", "round robin", 0.0), ("least request", "least request", 0.0),
    *((f"by load, reports {delay:g} s old", "by load", delay) for delay in (0.6, 2.0, 5.0)),
]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--replicas", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=37)
    parser.add_argument("--plot", type=Path, help="writes the p99 of the cases as SVG")
    args = parser.parse_args()
    table(3, False, args.seed)
    figures = table(args.replicas, False, args.seed)
    varied = table(args.replicas, True, args.seed)
    if args.plot:
        bars = [(name, figures[name].p99) for name, _, _ in CASES] + [(f"{name}, times vary", varied[name].p99) for name, _, _ in CASES]
        args.plot.write_text(plot.bars(f"p99 of {args.replicas:,} simulated replicas, milliseconds", bars))


def table(replicas, is_varied, seed):
    """Prints the figures of all cases, and returns them by name."""
    times = "times vary" if is_varied else "equal times"
    print(f"\n{replicas} replicas, {times}: shares of the three kinds in %, mean and p99 in ms")
    found = {}
    for name, policy, delay in CASES:
        figures = found[name] = simulate(policy, replicas, delay, seed, is_varied)
        shares = ", ".join(f"{share:.1f}" for share in figures.shares)
        print(f"  {name:<28} {shares}   {figures.mean:.0f}, {figures.p99:.0f}", flush=True)
    return found


if __name__ == "__main__":
    main()
