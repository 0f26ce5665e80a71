"""The connection with the server: both sockets, both arenas, and how messages are sent over them."""

import struct

import numpy as np

from . import wire
from .arena import Inbox, Outbox
from .wire import ALIGNMENT, HEADER, PACKET_LIMIT, padding

_unpack_header = HEADER.unpack_from
_pack_header = HEADER.pack
_HEADER_SIZE = HEADER.size
_LENGTH = struct.Struct("<I")
# Characters of each text of a failure that finds no room.
_SHORTENED = 4096


class Connection:
    """One per process. Messages may be sent from any thread: a packet is written whole or not at all."""

    def __init__(self, fds):
        commands, events, inbox, outbox = fds
        self.commands = wire.connect(commands)
        self.events = wire.connect(events)
        self.inbox = Inbox(inbox)
        self.outbox = Outbox(outbox)
        self.inline_limit = wire.DEFAULT_INLINE_LIMIT
        self.closing = False
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

    def send_failure(self, sock, kind, ident, failure):
        """An ERROR message; texts that find no room are cut."""
        try:
            self.send(sock, kind, wire.ERROR, 0, ident, _texts(failure.message, failure.traceback))
        except OSError:
            self.send(sock, kind, wire.ERROR, 0, ident, _texts(failure.message[:_SHORTENED], ""))


def _texts(message, traceback):
    raw = message.encode("utf-8", "replace")
    return [_LENGTH.pack(len(raw)), raw, traceback.encode("utf-8", "replace")]
