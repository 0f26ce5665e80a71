"""HTTP/2 by hand: frames of any kind, streams that stay half open, windows that stay shut."""

import contextlib
import socket
import struct
import threading
import time

import raw_http

DATA, HEADERS, PRIORITY, RESET, SETTINGS, PUSH, PING, GO_AWAY, WINDOW, CONTINUATION = range(10)
END_STREAM, ACK, END_HEADERS = 1, 1, 4
INITIAL_WINDOW, MAX_STREAMS = 4, 3
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
SEND_SECONDS = 2
SERVICE = "/inference.GRPCInferenceService/"


def frame(kind, flags, stream, payload=b""):
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


def literal(name, value):
    """A header that enters no table (HPACK, without Huffman)."""
    return b"\0" + length(len(name)) + name + length(len(value)) + value


def length(number):
    """An integer with a prefix of seven bits."""
    if number < 127:
        return bytes([number])
    out, number = bytearray([127]), number - 127
    while number >= 128:
        out.append(number % 128 + 128)
        number //= 128
    return bytes(out) + bytes([number])


def call(method):
    """The header block of a gRPC call: one of inference, or a whole path."""
    path = method if method.startswith("/") else SERVICE + method
    fields = ((":method", "POST"), (":scheme", "http"), (":path", path), (":authority", "x"),
              ("te", "trailers"), ("content-type", "application/grpc"))
    return b"".join(literal(name.encode(), value.encode()) for name, value in fields)


def message(payload):
    """A gRPC message with its prefix."""
    return b"\0" + struct.pack(">I", len(payload)) + payload


class Connection:
    """A connection whose frames from the server are read by a thread of its own, unless `reads` is false.

    `seen` counts them by kind; `went_away` is the reason of a GOAWAY; `window` is what we may still send.
    """

    def __init__(self, address, initial_window=65535, reads=True):
        self.socket = raw_http.connect(address, 30, receive_buffer=None if reads else 4096)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        # Of sending alone: the thread that reads may wait as long as the server has nothing to say.
        self.socket.settimeout(None)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", SEND_SECONDS, 0))
        self.seen, self.went_away, self.closed = {}, None, False
        self._changed = threading.Condition()
        self._windows, self._initial, self.answered = {0: 65535}, 65535, 0
        setting = struct.pack(">HI", INITIAL_WINDOW, initial_window)
        self.send(PREFACE + frame(SETTINGS, 0, 0, setting))
        if reads:
            threading.Thread(target=self._read, daemon=True).start()

    def send(self, data):
        """False once the server has ended the connection."""
        if self.closed:
            return False
        try:
            self.socket.sendall(data)
            return True
        except OSError:
            self.closed = True
            return False

    def open(self, stream, method, flags=END_HEADERS):
        return self.send(frame(HEADERS, flags, stream, call(method)))

    def send_data(self, stream, data, patience=3.0):
        """Sends as much as flow control lets us; how many bytes that were before nothing moved for a while."""
        sent = 0
        while sent < len(data):
            room = self._room(stream, patience)
            if room <= 0:
                return sent
            piece = data[sent:sent + min(room, 16384)]
            with self._changed:
                self._windows[0] -= len(piece)
                self._windows[stream] = self._windows.get(stream, self._initial) - len(piece)
            if not self.send(frame(DATA, 0, stream, piece)):
                return sent
            sent += len(piece)
        return sent

    def _room(self, stream, patience):
        deadline = time.monotonic() + patience
        with self._changed:
            while True:
                room = min(self._windows[0], self._windows.get(stream, self._initial))
                left = deadline - time.monotonic()
                if room > 0 or self.closed or left <= 0:
                    return 0 if self.closed else room
                self._changed.wait(left)

    def wait(self, happened, patience=10.0):
        """Until `happened()` or the end of the connection; whether that came in time. Asked again at every frame."""
        with self._changed:
            return self._changed.wait_for(lambda: self.closed or happened(), patience)

    def _read(self):
        try:
            with self.socket.makefile("rb") as stream:
                while len(head := stream.read(9)) == 9:
                    size = int.from_bytes(head[:3], "big")
                    self._take(head[3], head[4], int.from_bytes(head[5:], "big"), stream.read(size))
        except (OSError, ValueError):
            pass
        with self._changed:
            self.closed = True
            self._changed.notify_all()

    def _take(self, kind, flags, stream, payload):
        with self._changed:
            self.seen[kind] = self.seen.get(kind, 0) + 1
            if kind == WINDOW:
                more = int.from_bytes(payload, "big")
                self._windows[stream] = self._windows.get(stream, self._initial) + more
            elif kind == SETTINGS and not flags & ACK:
                self._set(payload)
            elif kind == GO_AWAY:
                self.went_away = (int.from_bytes(payload[4:8], "big"), payload[8:].decode(errors="replace"))
            self._changed.notify_all()
        if kind == SETTINGS and not flags & ACK:
            self.send(frame(SETTINGS, ACK, 0))

    def _set(self, payload):
        for at in range(0, len(payload), 6):
            name, value = struct.unpack(">HI", payload[at:at + 6])
            if name == INITIAL_WINDOW:
                for stream in self._windows:
                    if stream:
                        self._windows[stream] += value - self._initial
                self._initial = value

    def close(self):
        self.closed = True
        with contextlib.suppress(OSError):
            # The thread that reads holds the socket open otherwise.
            self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()
