"""Traffic as servers see it, beside full load on one model: many models at once, connections that pause between their
requests, and a light client beside a heavy one.

Requests are sent over plain sockets by one thread, so that the same load goes to every server. Where the real Triton runs
beside ours, its models are Python models that do the same.
"""

import contextlib
import heapq
import random
import selectors
import socket
import tempfile
import threading
import time
from pathlib import Path

import measure
import quiet
import servers
from frontends import rows_of
from instructions import HEAD, binary_body
from repositories import add_sub_config, write_model

MODELS = 50
THINKING = 20
# Mean of the pauses; they are exponential, as those of people and cameras that know nothing of each other.
PAUSE = 0.02
HEAVY = 64


class Caller:
    """One connection: it sends a request, reads the answer, and pauses."""

    def __init__(self, server, models, seed):
        host, port = server.http.split(":")
        self.socket = socket.create_connection((host, int(port)))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        body, more = binary_body(("OUTPUT0", "OUTPUT1"))
        self.requests = [HEAD.format(model=m, length=len(body), more=more).encode() + body for m in models]
        self.random = random.Random(seed)
        self.sent = 0.0

    def send(self):
        self.sent = time.perf_counter()
        self.socket.sendall(self.random.choice(self.requests))

    def receive(self):
        """Seconds it took. An answer is shorter than what one call takes, and comes in one piece."""
        answer = self.socket.recv(65536)
        assert answer.startswith(b"HTTP/1.1 200"), answer
        return time.perf_counter() - self.sent


def play(callers, seconds, pause):
    """Seconds of every answer. `pause`: the mean between an answer and the next request of a connection."""
    took, waiting, end = [], [], time.perf_counter() + seconds
    with selectors.DefaultSelector() as selector:
        for number, caller in enumerate(callers):
            selector.register(caller.socket, selectors.EVENT_READ, caller)
            heapq.heappush(waiting, (time.perf_counter() + caller.random.expovariate(1 / pause), number))
        open_requests = 0
        while time.perf_counter() < end or open_requests:
            now = time.perf_counter()
            while waiting and waiting[0][0] <= now and now < end:
                callers[heapq.heappop(waiting)[1]].send()
                open_requests += 1
            next_send = waiting[0][0] if waiting else end
            for key, _ in selector.select(max(0, min(next_send, end) - time.perf_counter())):
                took.append(key.data.receive())
                open_requests -= 1
                later = time.perf_counter() + key.data.random.expovariate(1 / pause)
                heapq.heappush(waiting, (later, callers.index(key.data)))
    return took


def figures(took, seconds, cpu):
    took = sorted(took)
    rank = lambda share: 1e6 * took[min(len(took) - 1, int(share * len(took)))]  # noqa: E731
    return {"infer/s": len(took) / seconds, "p50 us": rank(0.5), "p99 us": rank(0.99), "CPU us/req": cpu}


def measured(server, models, callers, pause, seconds):
    made = [Caller(server, models, seed) for seed in range(callers)]
    play(made, seconds / 4, pause)
    before = server.cpu_seconds()
    took = play(made, seconds, pause)
    cpu = (server.cpu_seconds() - before) * 1e6 / len(took)
    [caller.socket.close() for caller in made]
    return figures(took, seconds, cpu)


def light_beside_heavy(server, seconds):
    """A client with one request every 20 ms, beside one that keeps many in flight on another model."""
    ended = threading.Event()

    def load():
        while not ended.is_set():
            measure.perf(server, "model1", "http", HEAVY, 1)

    heavy = threading.Thread(target=load)
    heavy.start()
    try:
        caller = Caller(server, ["model0"], 1)
        play([caller], 1, PAUSE)
        took = play([caller], 4 * seconds, PAUSE)
    finally:
        ended.set()
        heavy.join()
    return figures(took, 4 * seconds, None)


@contextlib.contextmanager
def running(targets):
    with contextlib.ExitStack() as stack:
        found = {}
        for target in targets:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            for number in range(MODELS if target == "galatea" else 4):
                config = add_sub_config(more="instance_group [ { count: 1 kind: KIND_CPU } ]\n")
                write_model(folder, f"model{number}", target, "add_sub", config)
            found[target] = stack.enter_context(servers.TARGETS[target](folder))
        yield found


def compared(args):
    """The real server's Python models take a process each: it has four of them where ours has fifty."""
    rows, raw = [], []
    with running(args.targets) as found:
        names = {target: [f"model{number}" for number in range(MODELS if target == "galatea" else 4)] for target in found}
        shapes = {
            "many models at once, 16 connections": lambda t, s: measured(s, names[t], 16, 1e-6, args.seconds),
            f"{THINKING} connections that pause": lambda t, s: measured(s, names[t][:1], THINKING, PAUSE, 2 * args.seconds),
            "a light client beside a heavy one": lambda t, s: light_beside_heavy(s, args.seconds),
        }
        for what, run in shapes.items():
            cases = {target: lambda t=target, s=server: run(t, s) for target, server in found.items()}
            runs = quiet.rounds_of(args.rounds, cases)
            medians = {target: median(done) for target, done in runs.items()}
            rows += [{**row, "server": row["server"].replace("cached", "Python models")} for row in rows_of(what, medians, None)]
            raw.append({"what": what, "runs": runs})
    return rows, raw


def median(runs):
    return {key: None if value is None else sorted(run[key] for run in runs)[len(runs) // 2] for key, value in runs[0].items()}
