"""What connects this process with the server: both sockets and both arenas, and how messages are put together."""

import _thread
import os
import struct

import numpy as np

from . import wire
from .arena import Inbox, Outbox
from .dtypes import BYTES
from .wire import ALIGNMENT, HEADER, PACKET_LIMIT, TENSOR, padding

_unpack_header = HEADER.unpack_from
_pack_header = HEADER.pack
_HEADER_SIZE = HEADER.size
_CACHE_LIMIT = 2048


class Link:
    """One per process. Messages may be sent from any thread: a packet is written whole or not at all."""

    def __init__(self, fds):
        work, side, inbox, outbox = fds
        self.work = wire.connect(work)
        self.side = wire.connect(side)
        self.inbox = Inbox(inbox)
        self.outbox = Outbox(outbox)
        self.inline_limit = wire.DEFAULT_INLINE_LIMIT
        self.closing = False
        self.owner = os.getpid()
        self.main_thread = _thread.get_ident()
        self._pending = self.inbox.pending

    def open(self, packet):
        """Header of a packet, where its meta and data start, and what they lie in. Released blocks are freed."""
        kind, flags, released, count, ident, meta_len, spill = _unpack_header(packet)
        meta = _HEADER_SIZE
        if spill:
            packet = self.inbox.block(*wire.BLOCK.unpack_from(packet, _HEADER_SIZE))
            meta = 0
        data = meta + meta_len
        if released:
            self.outbox.free(struct.unpack_from("<%dQ" % released, packet, meta))
            meta += 8 * released
        return kind, flags, count, ident, packet, meta, data

    def text(self, buffer, meta, data):
        return bytes(buffer[meta:data]).decode("utf-8", "replace")

    def send(self, sock, kind, flags, count, ident, parts=(), data=()):
        """Sends one message: `parts` are the pieces of meta, `data` the inline tensors with their padding."""
        released = 0
        if self._pending:
            offsets = self.inbox.take_pending()[:1024]
            released = len(offsets)
            parts = [struct.pack("<%dQ" % released, *offsets), *parts]
        meta = b"".join(parts)
        if data:
            meta += padding(_HEADER_SIZE + len(meta))
        size = _HEADER_SIZE + len(meta)
        for piece in data:
            size += piece.nbytes if isinstance(piece, np.ndarray) else len(piece)
        if size > PACKET_LIMIT:
            self._spill(sock, (kind, flags, released, count, ident), meta, data)
        else:
            sock.sendmsg([_pack_header(kind, flags, released, count, ident, len(meta), 0), meta, *data])

    def _spill(self, sock, head, meta, data):
        """Sends a message whose meta and data do not fit into a packet through the outbox."""
        if data:
            meta = meta.ljust(len(meta) + (-len(meta) % ALIGNMENT), b"\0")
        whole = b"".join([meta, *(bytes(piece) for piece in data)])
        offset = self.outbox.store(whole, len(whole))
        header = _pack_header(*head, len(meta), 1)
        sock.sendmsg([header, wire.BLOCK.pack(offset, len(whole))])

    def fail(self, sock, kind, ident, text, count=0):
        """An ERROR message; a text that nobody can carry is cut."""
        raw = text.encode("utf-8", "replace")
        try:
            self.send(sock, kind, wire.ERROR, count, ident, [raw])
        except OSError:
            self.send(sock, kind, wire.ERROR, count, ident, [raw[:4096]])


class Body:
    """Tensors on their way into a message: their headers, and what travels inline behind them."""

    __slots__ = ("_link", "_limit", "_used", "data", "stored")

    def __init__(self, link):
        self._link = link
        self._limit = link.inline_limit
        self._used = 0
        self.data = []
        self.stored = []

    def mark(self):
        """Where the body stands, for `rewind`."""
        return self._used, len(self.data), len(self.stored)

    def rewind(self, mark):
        """Takes back what was added since `mark`: a response that turned out bad must not cost the others."""
        self._used, data, stored = mark
        del self.data[data:]
        self._link.outbox.free(self.stored[stored:])
        del self.stored[stored:]

    def add(self, tensor):
        """Puts a tensor into the message; its header."""
        size = tensor._size
        start = self._used
        misfit = -start % ALIGNMENT
        if start + misfit + size > self._limit and size:
            return self._add_stored(tensor, size)
        if misfit:
            self.data.append(padding(start))
            start += misfit
        if size:
            self.data.append(tensor._payload())
        self._used = start + size
        if tensor._code == BYTES:
            return _header(tensor, 0, start)
        key = (tensor._name, tensor._code, tensor._shape, start)
        header = _headers.get(key)
        if header is None:
            if len(_headers) > _CACHE_LIMIT:
                _headers.clear()
            header = _headers[key] = _header(tensor, 0, start)
        return header

    def _add_stored(self, tensor, size):
        payload = tensor._array if tensor._raw is None else tensor._payload()
        offset = self._link.outbox.store(payload, size)
        self.stored.append(offset)
        return _header(tensor, 1, offset)


_headers = {}


def _header(tensor, place, offset):
    name = tensor._name.encode()
    shape = tensor._shape
    fixed = TENSOR.pack(len(name), tensor._code, place, len(shape), offset, tensor._size)
    return b"".join((fixed, struct.pack("<%dq" % len(shape), *shape), name))
