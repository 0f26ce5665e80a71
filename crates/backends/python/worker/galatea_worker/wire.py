"""Layout of the messages between server and worker (PROTOCOL.md), and the sockets they travel on."""

import _socket
import struct

# Message kinds
HELLO, INIT, READY, COMPLETE, COMPLETED, EXECUTE, EXECUTED, FINALIZE, FINALIZED = range(1, 10)
RESPONSE, INFER, CANCEL, LOG, CALL, NOTIFY, RELEASE, READINESS, TRIMMED = range(20, 29)
INFERRED, CALL_RESULT, SERVER_RELEASE, READINESS_QUERY, TRIM, LOG_LEVEL = range(40, 46)

# Header flags
FINAL, ERROR, EMPTY, DECOUPLED, RAISED = 1, 2, 4, 8, 16

HEADER = struct.Struct("<BBHIQII")
BLOCK = struct.Struct("<QQ")
REQUEST = struct.Struct("<QQQqqIHHHHHHI")
RESPONSE_HEAD = struct.Struct("<QBBHIII")
TENSOR = struct.Struct("<HBBIQQ")
SHORT = struct.Struct("<H")

PACKET_LIMIT = 131072
DEFAULT_INLINE_LIMIT = 32768
ALIGNMENT = 16

# Values of `has_body` of a response
NO_BODY, OUTPUTS, RESCHEDULED = 0, 1, 2

_PADDING = tuple(b"\0" * n for n in range(ALIGNMENT))


class Closed(Exception):
    """The server closed its end."""


def padding(length):
    """The zero bytes that bring `length` up to the next multiple of the alignment."""
    return _PADDING[-length % ALIGNMENT]


def connect(fd):
    """A socket object over an inherited descriptor. `_socket` spares the import of `socket` and what it needs."""
    return _socket.socket(_socket.AF_UNIX, _socket.SOCK_SEQPACKET, 0, fd)


class Receiver:
    """Takes packets from one socket through one buffer.

    A packet is handed out as its own writable bytearray: models may keep arrays over it for as long as they
    like, and copying the few bytes of a packet costs less than tracking those.
    """

    __slots__ = ("_receive", "_view")

    def __init__(self, sock):
        self._receive = sock.recv_into
        self._view = memoryview(bytearray(PACKET_LIMIT))

    def receive(self):
        view = self._view
        try:
            length = self._receive(view)
        except OSError:
            raise Closed from None
        if length == 0:
            raise Closed
        return bytearray(view[:length])
