"""The tables at the end, and what is wrong with them."""

import time

import clients
import servers
import users
import watch
from use import WARM

SETTLE_SECONDS = 20


def counters(server):
    """Successes by model, as the metrics have them."""
    found = clients.metrics(server)
    name = "nv_inference_request_success"
    return {labels: value for (family, labels), value in found.items() if family == name}


def show(server, tallies, recorder, before):
    """Prints the tables; the faults."""
    faults = []
    print(f"{'clients':62} {'sent':>8} {'right':>8} {'refused':>8} {'wrong':>6} {'lost':>5} {'p50 ms':>8} {'p99 ms':>8}")
    for make, tally in tallies.items():
        what = make.__doc__.strip().splitlines()[0]
        times = " ".join(f"{value:8.1f}" if value is not None else f"{'-':>8}" for value in map(tally.percentile, (0.5, 0.99)))
        counts = tally.counts
        print(f"{what[:62]:62} {tally.sent:8} {counts['right']:8} {counts['refused']:8} {counts['wrong']:6} {counts['lost']:5} {times}")
        faults += [f"{what}: {fault}" for fault in tally.faults]
        if not counts["right"]:
            faults.append(f"{what}: not one right answer")
    if server.process.poll() is not None:
        return [*faults, f"the server ended with {server.process.returncode}"]
    faults += held(server, recorder)
    return [*faults, *counted(server, tallies, before)]


def held(server, recorder):
    deadline = time.monotonic() + SETTLE_SECONDS
    while True:
        after, processes = watch.use_of(server.pid), len(servers.descendants(server.pid))
        faults = list(recorder.faults(after, processes))
        if not faults or time.monotonic() > deadline:
            break
        time.sleep(1)
    peak = recorder.peak()
    print(f"\nmemory: {recorder.before.rss_mb:.0f} MB at the start, {recorder.mean_mb(WARM, 2 * WARM):.1f} warm, "
          f"{recorder.mean_mb(1 - WARM, 1):.1f} in the last part, {peak.rss_mb:.0f} at most, {after.rss_mb:.0f} afterwards")
    print(f"descriptors: {recorder.before.descriptors}, {peak.descriptors} at most, {after.descriptors} afterwards; "
          f"threads: {recorder.before.threads}, {peak.threads}, {after.threads}; "
          f"processes of models: {recorder.processes_before}, {processes} afterwards")
    return faults


def counted(server, tallies, before):
    """The server has counted as many successes of two models as their clients have had right answers, or the few more
    whose answers their clients did not wait for."""
    found = counters(server)
    labels = 'model="doubled",version="1"'
    server_side = found[labels] - before[labels]
    client_side = tallies[users.Ensemble].counts["right"]
    print(f"ensemble requests: {client_side} right answers at the clients, {server_side:.0f} successes at the server")
    return [] if server_side == client_side else [f"{server_side:.0f} successes counted for {client_side} right answers"]
