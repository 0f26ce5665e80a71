"""Instructions of the server per request, counted by callgrind: the lowest of some rounds, which a busy machine changes least.

    python instructions.py PROGRAM [PROGRAM ...] [--requests 1000] [--keep FOLDER] [--flag=FLAG ...] [--tls] [--cached]
           [--rows TEXT ...]

Each program is a release build; with CARGO_PROFILE_RELEASE_STRIP=false CARGO_PROFILE_RELEASE_DEBUG=1 the profiles that
--keep leaves name functions (callgrind_annotate reads them). With --flag each is measured once more, with these options of serve;
with --tls once more over TLS (callgrind knows no VAES, so that encryption counts for more than it costs); --cached adds
answers of `simple` from the response cache. One connection, one request at a time, and a pause before each in which the
server falls asleep, so that each request wakes it once: without the pause a quick client saved it a wake-up now and then.
The last line is the ratio of the identity of `examples/c-backend` to the built-in one, whose answers have four parameters more.
Needs valgrind and a C compiler. Python models are not measured: their processes do not start under it.
"""

import argparse
import json
import os
import re
import shutil
import socket
import ssl
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "python"))

import builds  # noqa: E402
import certificates  # noqa: E402
import numpy as np  # noqa: E402
import servers  # noqa: E402
from repositories import EXAMPLES, copy_example, identity_config, tensor, write_model  # noqa: E402

WARM_UP = 300
# Seconds before each request; callgrind slows the end of the one before some fifty times.
PAUSE = 0.004
# Who executes depends on how long executions take. From the end of each wait for sockets, the clock of the measured server is as
# slow as its code.
SLOW_CLOCK = """
#include <stdatomic.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static _Atomic long long waited_until;

static long long now(void) {
  struct timespec time;
  syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &time);
  return time.tv_sec * 1000000000LL + time.tv_nsec;
}

int epoll_wait(int epoll, struct epoll_event *events, int most, int timeout) {
  int count = (int)syscall(SYS_epoll_pwait, epoll, events, most, timeout, 0, 0);
  atomic_store(&waited_until, now());
  return count;
}

int clock_gettime(clockid_t clock, struct timespec *time) {
  if (clock != CLOCK_MONOTONIC) return (int)syscall(SYS_clock_gettime, clock, time);
  long long begin = atomic_load(&waited_until), slow = begin + (now() - begin) / (begin ? 50 : 1);
  time->tv_sec = slow / 1000000000;
  time->tv_nsec = slow % 1000000000;
  return 0;
}
"""
# A busy machine adds wake-ups to some rounds, up to a tenth of the instructions: the lowest round counts.
ROUNDS = 8
HEAD = "POST /v2/models/{model}/infer HTTP/1.1\r\nHost: h\r\nAccept: */*\r\nContent-Length: {length}\r\n{more}\r\n"


def write_repository(folder):
    copy_example(folder, "simple")
    pairs = [tensor(kind, f"{kind.upper()}{n}", "TYPE_INT32", "16") for kind in ("input", "output") for n in (0, 1)]
    write_model(folder, "add_sub", "galatea", "add_sub", "max_batch_size: 8\n" + "".join(pairs))
    write_model(folder, "same", "galatea", "failing", identity_config())
    for name, backend in (("identity", "identity"), ("mirror", "mirror")):
        write_model(folder, name, "galatea", backend, "max_batch_size: 8\n" + "".join(pairs))
    (Path(folder) / "chain/1").mkdir(parents=True)
    (Path(folder) / "chain/config.pbtxt").write_text(f'name: "chain"\n{builds.CHAIN}')


def compile_library(source, library):
    library.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run(["cc", "-shared", "-fPIC", "-O2", "-o", library, source], check=True)
    return library


def compile_clock(folder):
    source = folder / "clock.c"
    source.write_text(SLOW_CLOCK)
    return compile_library(source, folder / "clock.so")


def write_cached(folder):
    """`simple` with answers from the cache."""
    config = (EXAMPLES / "simple/config.pbtxt").read_text().replace('"simple"', '"cached"')
    copy_example(folder, "simple", config=config + "response_cache { enable: true }\n", name="cached")


def binary_body(outputs):
    names = ("INPUT0", "INPUT1")
    tensors = [
        {"name": name, "shape": [1, 16], "datatype": "INT32", "parameters": {"binary_data_size": 64}} for name in names
    ]
    wanted = [{"name": name, "parameters": {"binary_data": True}} for name in outputs]
    text = json.dumps({"inputs": tensors, "outputs": wanted}, separators=(",", ":")).encode()
    return text + bytes(range(128)), f"Inference-Header-Content-Length: {len(text)}\r\n"


def json_body(count):
    data = [round(0.37 * n - 3, 4) for n in range(count)]
    inputs = [{"name": "INPUT0", "shape": [count], "datatype": "FP32", "data": data}]
    return json.dumps({"inputs": inputs}).encode(), ""


def http_call(server, authority, model, body, more):
    host, port = server.http.split(":")
    connection = socket.create_connection((host, int(port)))
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if authority:
        trust = ssl.create_default_context(cafile=authority.certificate)
        connection = trust.wrap_socket(connection, server_hostname="localhost")
    request = HEAD.format(model=model, length=len(body), more=more).encode() + body
    answers = connection.makefile("rb")

    def call():
        connection.sendall(request)
        assert b" 200 " in answers.readline()
        length = 0
        while (line := answers.readline()) != b"\r\n":
            name, _, value = line.partition(b":")
            length = int(value) if name.lower() == b"content-length" else length
        assert len(answers.read(length)) == length

    return call


def grpc_call(server, authority, model):
    """The same request again and again: a model with a response cache executes it once."""
    import tritonclient.grpc

    address = "localhost:" + server.grpc.rsplit(":", 1)[1]
    trust = {"ssl": True, "root_certificates": str(authority.certificate)} if authority else {}
    client = tritonclient.grpc.InferenceServerClient(address, **trust)
    inputs = [tritonclient.grpc.InferInput(name, [1, 16], "INT32") for name in ("INPUT0", "INPUT1")]
    for given in inputs:
        given.set_data_from_numpy(np.arange(16, dtype=np.int32).reshape(1, 16))
    return lambda: client.infer(model, inputs)


BUILT_IN, IN_C = "HTTP, identity built in", "HTTP, identity in C"
CASES = {
    "HTTP, add_sub": lambda server, authority: http_call(server, authority, "add_sub", *binary_body(("OUTPUT0", "OUTPUT1"))),
    "HTTP, simple": lambda server, authority: http_call(server, authority, "simple", *binary_body(("OUTPUT0", "OUTPUT1"))),
    "HTTP, chain": lambda server, authority: http_call(server, authority, "chain", *binary_body(("OUTPUT0",))),
    BUILT_IN: lambda server, authority: http_call(server, authority, "identity", *binary_body(("OUTPUT0", "OUTPUT1"))),
    IN_C: lambda server, authority: http_call(server, authority, "mirror", *binary_body(("OUTPUT0", "OUTPUT1"))),
    "HTTP, 16 numbers as JSON": lambda server, authority: http_call(server, authority, "same", *json_body(16)),
    "HTTP, 1000 numbers as JSON": lambda server, authority: http_call(server, authority, "same", *json_body(1000)),
    "gRPC, add_sub": lambda server, authority: grpc_call(server, authority, "add_sub"),
}

CACHE_FLAG = "--cache-config=local,size=1048576"
CACHED_CASES = {
    "HTTP, simple found in the cache": lambda server, authority: http_call(server, authority, "cached", *binary_body(("OUTPUT0", "OUTPUT1"))),
    "gRPC, simple": lambda server, authority: grpc_call(server, authority, "simple"),
    "gRPC, simple found in the cache": lambda server, authority: grpc_call(server, authority, "cached"),
}


def control(server, *command):
    subprocess.run(["callgrind_control", *command, str(server.pid)], check=True, capture_output=True)


def count(server, folder, name, call, requests):
    """Instructions per request in the best round; the profile of the last round is left in `folder`."""
    for _ in range(WARM_UP):
        call()
    control(server, "--instr=on")
    for _ in range(WARM_UP):
        call()
    rounds = [count_round(server, folder, name, call, requests // ROUNDS) for _ in range(ROUNDS)]
    control(server, "--instr=off")
    return min(rounds)


def count_round(server, folder, name, call, requests):
    control(server, "--zero")
    for _ in range(requests):
        time.sleep(PAUSE)
        call()
    control(server, f"--dump={name}")
    profile = max(folder.glob("profile.*"), key=lambda path: path.stat().st_mtime)
    total = re.search(r"^(?:summary|totals): (\d+)", profile.read_text(), re.MULTILINE)
    profile.rename(folder / f"{name.replace(' ', '_').replace(',', '')}.callgrind")
    return int(total[1]) / requests


def measure(program, folder, requests, cases, flags=(), over_tls=False):
    folder.mkdir(parents=True, exist_ok=True)
    os.environ["GALATEA"] = str(program)
    valgrind = ["valgrind", "--tool=callgrind", "--instr-atstart=no", "-q", f"--callgrind-out-file={folder}/profile"]
    with tempfile.TemporaryDirectory() as repository:
        write_repository(repository)
        compile_library(EXAMPLES.parent / "c-backend/mirror.c", folder / "backends/mirror/libtriton_mirror.so")
        clock = {"LD_PRELOAD": str(compile_clock(folder))}
        if CACHE_FLAG in flags:
            write_cached(repository)
        authority, flags = encrypted(folder, flags) if over_tls else (None, flags)
        flags = [f"--backend-directory={folder}/backends", *flags]
        with servers.galatea(repository, *flags, env=clock, through=valgrind) as server:
            return {name: count(server, folder, name, make(server, authority), requests) for name, make in cases.items()}


def encrypted(folder, flags):
    """An authority, and the options of a server with a certificate of it."""
    authority = certificates.Authority(folder)
    pair = authority.issue()
    grpc = ["--grpc-use-ssl=true", f"--grpc-server-cert={pair.certificate}", f"--grpc-server-key={pair.key}"]
    return authority, [*flags, *grpc, f"--https-cert={pair.certificate}", f"--https-key={pair.key}"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", nargs="+", type=Path)
    parser.add_argument("--requests", type=int, default=1000)
    parser.add_argument("--keep", type=Path, help="folder for the profiles")
    parser.add_argument("--flag", action="append", default=[], help="an option of serve for a second run of each")
    parser.add_argument("--tls", action="store_true", help="a run over TLS of each, too")
    parser.add_argument("--cached", action="store_true", help="answers from the response cache, too")
    parser.add_argument("--rows", nargs="+", default=[""], metavar="TEXT", help="only rows that have one of these texts")
    args = parser.parse_args()
    cases = CASES | (CACHED_CASES if args.cached else {})
    cases = {name: case for name, case in cases.items() if any(text in name for text in args.rows)}
    cache = [CACHE_FLAG] if args.cached else []
    if shutil.which("valgrind") is None:
        parser.error("valgrind is not installed")
    with tempfile.TemporaryDirectory() as scratch:
        keep = args.keep.resolve() if args.keep else Path(scratch)
        ways = {"": (cache, False)}
        ways |= {", with flags": (args.flag + cache, False)} if args.flag else {}
        ways |= {", TLS": (cache, True)} if args.tls else {}
        runs = [(p.resolve(), how, way) for p in args.programs for how, way in ways.items()]
        found = [measure(p, keep / f"{n}-{p.name}", args.requests, cases, *way) for n, (p, _, way) in enumerate(runs)]
    titles = "".join(f" {p.name}{how} |" for p, how, _ in runs)
    print(f"| instructions per request |{titles}\n|---|" + "---|" * len(found))
    for name in cases:
        first = found[0][name]
        print(f"| {name} |" + "".join(f" {run[name]:,.0f} ({run[name] / first:.3f}) |" for run in found))
    if {BUILT_IN, IN_C} <= cases.keys():
        print("| in C to built in |" + "".join(f" {run[IN_C] / run[BUILT_IN]:.3f} |" for run in found))


if __name__ == "__main__":
    main()
