"""Rounds of measurements, those left out in which others used the machine.

What others used is what /proc/stat counts beyond this process and those it started, stolen time included, as a share of
all processors. A round in which it was more than MOST_FOREIGN during one of its measurements is measured again.
"""

import os
import sys
import time
from pathlib import Path

import servers

MOST_FOREIGN = 0.10
# So many times as many rounds as asked for are tried before the least disturbed ones have to do.
TRIES = 4
TICKS = os.sysconf("SC_CLK_TCK")


def busy_seconds():
    """Time that processors worked for somebody, or that another machine took. Interrupts are nobody's."""
    user, nice, system, _idle, _iowait, _irq, _softirq, steal = map(
        int, Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]
    )
    return (user + nice + system + steal) / TICKS


def own_seconds():
    """Processor time of this process, of those it started and of those that they waited for."""
    return sum(map(ticks_with_ended_children, [os.getpid(), *servers.descendants(os.getpid())])) / TICKS


def ticks_with_ended_children(pid):
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return sum(map(int, fields[11:15]))


def watched(case):
    """(what `case` returns, the share of all processors that others used meanwhile)."""
    begin, busy, own = time.monotonic(), busy_seconds(), own_seconds()
    result = case()
    own, busy = own_seconds() - own, busy_seconds() - busy
    return result, max(0.0, busy - own) / ((time.monotonic() - begin) * os.cpu_count())


def rounds_of(count, cases):
    """Runs {name: callable} in turn until there are `count` undisturbed rounds; runs by name, in order of the rounds.

    Every other round goes backwards (A B, B A): a machine that gets slower meanwhile weighs on all of them.
    """
    kept, disturbed = [], []
    for number in range(count * TRIES):
        if len(kept) == count:
            break
        found = {name: watched(cases[name]) for name in sorted(cases, key=list(cases).index, reverse=number % 2 == 1)}
        foreign = max(share for _, share in found.values())
        (kept if foreign <= MOST_FOREIGN else disturbed).append((foreign, found))
    if disturbed:
        print(told(len(kept), disturbed), file=sys.stderr, flush=True)
    kept += sorted(disturbed, key=lambda one: one[0])[: count - len(kept)]
    return {name: [with_share(*found[name]) for _, found in kept] for name in cases}


def told(kept, disturbed):
    shares = ", ".join(f"{share:.0%}" for share, _ in disturbed)
    return f"others used {shares} of the machine in {len(disturbed)} rounds, which do not count beside {kept} quiet ones"


def with_share(figures, share):
    return {**figures, "foreign %": 100 * share} if isinstance(figures, dict) else figures
