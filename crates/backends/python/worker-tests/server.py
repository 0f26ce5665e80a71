"""A stand-in for the server: talks PROTOCOL.md with a real worker process. Written from the protocol, shares no code."""

import json
import mmap
import os
import socket
import struct
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import numpy as np

WORKER = Path(__file__).resolve().parents[1] / "worker"
HEADER, REQUEST, RESPONSE, TENSOR = (struct.Struct(s) for s in ("<BBHIQII", "<QQQqqIHHHHHHI", "<QBBHIII", "<HBBIQQ"))
TYPES = {1: "?", 2: "u1", 3: "u2", 4: "u4", 5: "u8", 6: "i1", 7: "i2", 8: "i4", 9: "i8", 10: "f2", 11: "f4", 12: "f8"}
CODES = {np.dtype(kind): code for code, kind in TYPES.items()}
FINAL, ERROR, EMPTY, DECOUPLED, RAISED = 1, 2, 4, 8, 16
TIMEOUT = 30


class Message:
    def __init__(self, packet, outbox):
        self.kind, self.flags, released, self.count, self.id, meta_len, spill = HEADER.unpack_from(packet)
        self.blocks = []
        self.spilled = bool(spill)
        if spill:
            offset, length = struct.unpack_from("<QQ", packet, 24)
            self.blocks.append(offset)
            packet = b"\0" * 24 + read(outbox, offset, length)
        self.packet, self.outbox = packet, outbox
        self.data = 24 + meta_len
        self.released = struct.unpack_from("<%dQ" % released, packet, 24)
        self.at = 24 + 8 * released

    @property
    def text(self):
        return self.packet[self.at : self.data].decode()

    @property
    def failure(self):
        """Message and traceback of an ERROR message."""
        (length,) = struct.unpack_from("<I", self.packet, self.at)
        start = self.at + 4
        return self.packet[start : start + length].decode(), self.packet[start + length : self.data].decode()

    @property
    def json(self):
        return json.loads(self.text)

    def take(self, form):
        values = form.unpack_from(self.packet, self.at)
        self.at += form.size
        return values

    def take_text(self, length):
        self.at += length
        return self.packet[self.at - length : self.at].decode()

    def tensor(self):
        name_len, code, place, ndim, offset, length = self.take(TENSOR)
        shape = self.take(struct.Struct("<%dq" % ndim))
        name = self.take_text(name_len)
        if place == 1:
            assert offset % 64 == 0
            self.blocks.append(offset)
            raw = read(self.outbox, offset, length)
        else:
            start = self.data - 24 * self.spilled
            assert offset % 16 == 0 and start % 16 == 0 or not length
            raw = self.packet[self.data + offset : self.data + offset + length]
        return name, Tensor(code, shape, raw)

    def response(self):
        key, code, body, outputs, error_len, params_len, traceback_len = self.take(RESPONSE)
        error, traceback, params = (self.take_text(n) for n in (error_len, traceback_len, params_len))
        return Response(key, code, body, error, traceback, params, dict(self.tensor() for _ in range(outputs)))

    def responses(self):
        return [self.response() for _ in range(self.count)]

    def request(self):
        fields = self.take(REQUEST)
        texts = [self.take_text(n) for n in (*fields[8:12], fields[12])]
        names = [self.take_text(self.take(struct.Struct("<H"))[0]) for _ in range(fields[7])]
        return fields, texts, names, dict(self.tensor() for _ in range(fields[6]))


class Response:
    def __init__(self, *fields):
        self.key, self.code, self.body, self.error, self.traceback, self.params, self.outputs = fields


class Tensor:
    def __init__(self, code, shape, raw):
        self.code, self.shape, self.raw = code, tuple(shape), raw

    @property
    def array(self):
        return np.frombuffer(self.raw, TYPES[self.code]).reshape(self.shape)

    @property
    def texts(self):
        found, at = [], 0
        while at < len(self.raw):
            (length,) = struct.unpack_from("<I", self.raw, at)
            found.append(self.raw[at + 4 : at + 4 + length])
            at += 4 + length
        return found


def read(fd, offset, length):
    return os.pread(fd, length, offset) if length else b""


def of(array, code=None):
    if isinstance(array, list):
        items = [item if isinstance(item, bytes) else item.encode() for item in array]
        return Tensor(13, (len(items),), b"".join(struct.pack("<I", len(item)) + item for item in items))
    return Tensor(code or CODES[array.dtype], array.shape, array.tobytes())


class Worker:
    """A worker process running `source` as model.py."""

    def __init__(self, source, decoupled=False, files=(), init=True, python=sys.executable, preexec=None, inline=32768,
                 arena_limit=None):
        self.folder = tempfile.TemporaryDirectory()
        self.version = Path(self.folder.name) / "m" / "1"
        self.version.mkdir(parents=True)
        (self.version / "model.py").write_text(source)
        for name, text in dict(files).items():
            (self.version / name).write_text(text)
        self.commands, commands = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.events, events = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.inbox, self.outbox = os.memfd_create("inbox"), os.memfd_create("outbox")
        fds = [commands.fileno(), events.fileno(), self.inbox, self.outbox]
        self.process = subprocess.Popen(
            [python, str(WORKER), *map(str, fds)], pass_fds=fds, preexec_fn=preexec,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )
        commands.close()
        events.close()
        for sock in (self.commands, self.events):
            sock.settimeout(TIMEOUT)
        self.inbox_used = 0
        self.to_release = []
        self.serving = {}
        self.settings = {
            "model_py": str(self.version / "model.py"), "version_dir": str(self.version),
            "model_dir": str(self.version.parent), "decoupled": decoupled, "inline_limit": inline,
            "arena_limit": arena_limit,
            "args": {"model_name": "m", "model_instance_name": "m_0", "model_config": '{"name": "m"}'},
            "log_level": {"info": True, "warning": True, "error": True, "verbose": 0},
        }
        self.hello = self.receive()
        self.ready = self.init() if init else None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.commands.close()
        self.events.close()
        if self.process.stdout.closed:
            return self.output
        self.output, _ = self.process.communicate(timeout=TIMEOUT)
        os.close(self.inbox)
        os.close(self.outbox)
        self.folder.cleanup()
        return self.output

    def send(self, sock, kind, flags=0, count=0, ident=0, meta=b"", tensors=(), padded=False):
        released, self.to_release = self.to_release, []
        meta = struct.pack("<%dQ" % len(released), *released) + meta
        data = b""
        if tensors:
            meta += b"\0" * (-(24 + len(meta)) % 16)
            data = b"".join(tensors)
        sock.send(HEADER.pack(kind, flags, len(released), count, ident, len(meta), 0) + meta + data)

    def receive(self, sock=None):
        packet = (sock or self.commands).recv(1 << 17)
        if not packet:
            raise EOFError
        message = Message(packet, self.outbox)
        return message

    def init(self):
        self.send(self.commands, 2, meta=json.dumps(self.settings).encode())
        return self.receive()

    def store(self, raw):
        offset = -(-self.inbox_used // 64) * 64
        self.inbox_used = offset + len(raw)
        os.ftruncate(self.inbox, max(os.fstat(self.inbox).st_size, self.inbox_used))
        os.pwrite(self.inbox, raw, offset)
        return offset

    def encode(self, tensors, data, stored):
        """Headers of named tensors; inline data is appended to `data`."""
        parts = []
        for name, tensor in tensors.items():
            if stored:
                place, offset = 1, self.store(tensor.raw)
            else:
                used = sum(map(len, data))
                data.append(b"\0" * (-used % 16))
                place, offset = 0, used + -used % 16
                data.append(tensor.raw)
            parts.append(TENSOR.pack(len(name), tensor.code, place, len(tensor.shape), offset, len(tensor.raw)))
            parts.append(struct.pack("<%dq" % len(tensor.shape), *tensor.shape) + name.encode())
        return b"".join(parts)

    def request(self, key, inputs, data, outputs=("OUT",), id="", params="", stored=False, corr=0, corr_text="", flags=0,
                timeout=0, trace=""):
        head = REQUEST.pack(key, corr, timeout, 1, 0, flags, len(inputs), len(outputs), len(id), len(corr_text), 0,
                            len(trace), len(params))
        names = b"".join(struct.pack("<H", len(name)) + name.encode() for name in outputs)
        texts = (id + corr_text + trace + params).encode()
        return head + texts + names + self.encode(inputs, data, stored)

    def execute(self, *requests, ident=1, **options):
        """Sends requests (dicts of tensors, keys 1, 2, ...) and gives the EXECUTED message."""
        self.start(*requests, ident=ident, **options)
        return self.receive()

    def start(self, *requests, ident=1, **options):
        data = []
        meta = b"".join(
            self.request(key, {n: t if isinstance(t, Tensor) else of(t) for n, t in inputs.items()}, data, **options)
            for key, inputs in enumerate(requests, 1)
        )
        self.send(self.commands, 6, count=len(requests), ident=ident, meta=meta, tensors=data)

    def one(self, inputs, **options):
        """The single response of a single request."""
        message = self.execute(inputs, **options)
        assert not message.flags & ERROR, message.failure
        (response,) = message.responses()
        return response

    def call_result(self, call, result=None, error=None, code=2):
        if error is None:
            self.send(self.events, 41, ident=call, meta=json.dumps(result).encode())
        else:
            self.send(self.events, 41, flags=ERROR, count=code, ident=call, meta=error.encode())

    def inferred(self, call, tensors=None, flags=FINAL, error="", stored=False):
        if tensors is None and not error:
            self.send(self.events, 40, flags=flags | EMPTY, ident=call)
            return
        data = []
        tensors = {name: of(array) for name, array in (tensors or {}).items()}
        head = RESPONSE.pack(0, 2 if error else 0, 0 if error else 1, len(tensors), len(error), 0, 0)
        meta = head + error.encode() + self.encode(tensors, data, stored)
        self.send(self.events, 40, flags=flags, count=1, ident=call, meta=meta, tensors=data)

    def answering(self, answer):
        """A thread that answers each event with `answer(worker, message)` until the socket closes."""

        def run():
            try:
                while True:
                    answer(self, self.receive(self.events))
            except (OSError, EOFError):
                pass

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        return thread

    def rss_kb(self):
        for line in Path("/proc/%d/status" % self.process.pid).read_text().splitlines():
            if line.startswith("VmRSS"):
                return int(line.split()[1])

    def cpu_seconds(self):
        fields = Path("/proc/%d/schedstat" % self.process.pid).read_text().split()
        return int(fields[0]) / 1e9

    def mapped(self):
        return mmap.mmap(self.outbox, os.fstat(self.outbox).st_size)
