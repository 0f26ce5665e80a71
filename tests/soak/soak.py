"""A long run under mixed load: every answer right, none lost, memory flat.

Clients of all kinds work on one server at once, over HTTP, gRPC and streams: such that check every value, such that
cancel, leave, read slowly or send nonsense, and some that load, reload and unload models meanwhile. At the end one row
per kind of client, memory, descriptors, threads and processes over time, and the counters of the server beside those
of the clients. The exit status is 0 only if nothing was wrong, nothing lost and nothing grew.
"""

import argparse
import random
import sys
import tempfile
import threading
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "python"), str(HERE.parent / "attack")]

import operators  # noqa: E402
import report  # noqa: E402
import repository  # noqa: E402
import servers  # noqa: E402
import streams  # noqa: E402
import trouble  # noqa: E402
import users  # noqa: E402
from tally import Lost, Refused, Tally, Wrong  # noqa: E402
from use import Recorder  # noqa: E402

# How many clients of each kind work at once.
CLIENTS = {
    users.JsonPairs: 2, users.BinaryVectors: 2, users.GrpcPairs: 2, users.Ensemble: 1, users.PythonTexts: 2,
    streams.GrpcStream: 1, streams.Events: 1, streams.SlowReader: 2,
    trouble.Cancels: 1, trouble.Leaves: 1, trouble.Malformed: 2, trouble.FullQueue: 4,
    operators.Reloads: 1, operators.ReloadsPython: 1, operators.OfReloaded: 1, operators.ComesAndGoes: 1,
    operators.OfComesAndGoes: 1, operators.FailedLoads: 1, operators.Observer: 1,
}
PATIENCE = 60


def work(make, server, folder, tally, seed, stop):
    """One client: again and again until told to stop. What it raises is counted; it begins anew after that."""
    chance, client = random.Random(seed), None
    while not stop.is_set():
        begin = time.monotonic()
        try:
            client = client or make(server, folder, chance, stop)
            client.step()
            tally.right(time.monotonic() - begin)
        except Refused as refused:
            tally.refused(str(refused))
        except Wrong as wrong:
            tally.wrong(str(wrong))
        except Exception as error:  # no answer, or none that can be read
            tally.lost(f"{type(error).__name__}: {error}" if not isinstance(error, Lost) else str(error))
            client = None
            time.sleep(0.1)
        stop.wait(getattr(make, "PAUSE", 0))
    if client:
        client.close()


def play(server, folder, minutes, seed):
    """Tallies by kind of client, and the record of what the server held."""
    tallies = {make: Tally() for make in CLIENTS}
    stop, recorder = threading.Event(), Recorder(server.pid)
    threads = []
    for number, make in enumerate(make for make, count in CLIENTS.items() for _ in range(count)):
        arguments = (make, server, folder, tallies[make], seed * 1000 + number, stop)
        threads.append(threading.Thread(target=work, args=arguments, daemon=True))
    recorder.start()
    for thread in threads:
        thread.start()
    end = time.monotonic() + 60 * minutes
    while time.monotonic() < end and server.process.poll() is None:
        time.sleep(min(30, max(0, end - time.monotonic())))
        print(f"  {recorder.line()}, {sum(t.sent for t in tallies.values())} requests", file=sys.stderr, flush=True)
    stop.set()
    deadline = time.monotonic() + PATIENCE
    for thread, make in zip(threads, (make for make, count in CLIENTS.items() for _ in range(count))):
        thread.join(max(0, deadline - time.monotonic()))
        if thread.is_alive():
            tallies[make].lost(f"no answer {PATIENCE} s after the end")
    recorder.stop()
    return tallies, recorder


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", type=Path, help="the program (default: the newest build)")
    parser.add_argument("--minutes", type=float, default=15)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    if args.server:
        servers.os.environ["GALATEA"] = str(args.server)
    with tempfile.TemporaryDirectory(prefix="galatea-soak-") as folder:
        loaded = repository.write(Path(folder))
        flags = ("--model-control-mode=explicit", *(f"--load-model={name}" for name in loaded))
        with servers.galatea(folder, *flags) as server:
            before = report.counters(server)
            tallies, recorder = play(server, Path(folder), args.minutes, args.seed)
            faults = report.show(server, tallies, recorder, before)
            status = server.stop(timeout=90)
    if status != 0:
        faults += [f"the server's exit status is {status}", *server.log[-20:]]
    print("\n".join(["", *(f"FAULT: {fault}" for fault in faults)]) if faults else "\nnothing wrong, nothing lost, memory flat")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
