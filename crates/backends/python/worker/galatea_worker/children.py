"""Processes that a model forks reach the server through the worker that they were forked from.

The connection with the server belongs to the worker alone. So before its first fork the worker makes a pair of sockets,
the door. A thread of a child that wants something of the server sends one end of a new pair through it, and asks over
the other end, one question at a time; a thread of the worker answers those of one such pair. Both sides are the model's
own code and user, which is why they may speak pickle.
"""

import _socket
import _thread
import os
import pickle
import struct

from . import log, server
from .errors import TritonModelException
from .request import InferenceRequest
from .response import ErrorCode, InferenceResponse, ResponseIterator, TritonError
from .tensor import from_message

_LENGTH = struct.Struct("<Q")
_DESCRIPTOR = struct.Struct("i")
# Threads of children that may be connected at the same time.
_MOST = 256
_GONE = (
    "Cannot communicate with parent service: the worker that this process was forked from has ended, or serves %d "
    "threads of such processes already" % _MOST
)


def _pair(kind):
    return _socket.socketpair(_socket.AF_UNIX, kind, 0)


def _send(sock, message):
    raw = pickle.dumps(message, 4)
    sock.sendall(_LENGTH.pack(len(raw)))
    sock.sendall(raw)


def _receive(sock):
    return pickle.loads(_exactly(sock, _LENGTH.unpack(_exactly(sock, _LENGTH.size))[0]))


def _exactly(sock, length):
    raw = bytearray(length)
    view = memoryview(raw)
    while view:
        count = sock.recv_into(view)
        if not count:
            raise EOFError
        view = view[count:]
    return raw


# What travels


def _plain_tensor(tensor):
    return tensor._name, tensor._code, tuple(tensor._shape), bytearray(tensor._payload())


def _tensor(plain):
    name, code, shape, raw = plain
    return from_message((name, code, shape, 0, len(raw)), raw, 0)


_REQUEST = ("_id", "_correlation", "_outputs", "_model", "_version", "_flags", "_timeout", "_trace", "_cause", "_parameters")


def _plain_request(request):
    return [_plain_tensor(tensor) for tensor in request._inputs], [getattr(request, name) for name in _REQUEST]


def _request(plain):
    inputs, values = plain
    request = InferenceRequest(inputs=[_tensor(tensor) for tensor in inputs], requested_output_names=[], model_name="")
    for name, value in zip(_REQUEST, values):
        setattr(request, name, value)
    return request


def _plain_response(response):
    error = response._error
    said = None if error is None else (error._message, int(error._code))
    return [_plain_tensor(tensor) for tensor in response._outputs], said, response._parameters


def _response(plain):
    outputs, said, parameters = plain
    error = None if said is None else TritonError(said[0], ErrorCode(said[1]))
    response = InferenceResponse([_tensor(tensor) for tensor in outputs], error)
    response._parameters = parameters
    return response


# The worker's side


class Door:
    """Where children knock. Made before the first fork."""

    def __init__(self):
        self._inside, self._outside = _pair(_socket.SOCK_SEQPACKET)
        self._served = set()
        _thread.start_new_thread(self._open, ())

    def leave(self):
        """In a child: closes what the worker alone may read; the worker as the child sees it."""
        for sock in [self._inside, *self._served]:
            sock.close()
        self._served = set()
        return Worker(self._outside)

    def _open(self):
        while True:
            packet, attached, _, _ = self._inside.recvmsg(1, _socket.CMSG_SPACE(_DESCRIPTOR.size))
            if not packet:
                return
            for _, _, descriptor in attached:
                self._admit(_socket.socket(fileno=_DESCRIPTOR.unpack(descriptor)[0]))

    def _admit(self, sock):
        if len(self._served) >= _MOST:
            sock.close()
            return
        self._served.add(sock)
        _thread.start_new_thread(self._serve, (sock,))

    def _serve(self, sock):
        asked = _Asked()
        try:
            while True:
                _send(sock, asked.answer(*_receive(sock)))
        except (EOFError, OSError):
            pass
        finally:
            self._served.discard(sock)
            sock.close()
            asked.end()


class _Asked:
    """Answers the questions of one thread of a child."""

    def __init__(self):
        self._streams = {}
        self._last = 0

    def end(self):
        """Nobody reads the streams that are open still."""
        for stream in self._streams.values():
            stream._stop()

    def answer(self, question, *values):
        """(whether it worked, the answer or the text of the failure)"""
        try:
            return True, getattr(self, question)(*values)
        except Exception as error:
            return False, str(error)

    def call(self, op, fields):
        return server.call(op, **fields)

    def notify(self, op, fields):
        server.notify(op, **fields)

    def log(self, level, message, file, line):
        log.emit(log.LogLevel(level), message, file, line)

    def infer(self, plain):
        return _plain_response(server.bls().infer(_request(plain), False))

    def stream(self, plain):
        self._last += 1
        self._streams[self._last] = server.bls().infer(_request(plain), True)
        return self._last

    def take(self, number):
        # Past the iterator, which keeps what it gave: the child has one that does.
        response, finished = self._streams[number]._take()
        if finished:
            del self._streams[number]
        return _plain_response(response), finished

    def stop(self, number):
        self._streams[number]._stop()


# The child's side


class Worker:
    """The worker as a forked child sees it: it has what `server` and `bls` offer in the worker itself."""

    def __init__(self, door):
        self._door = door
        self._own = _thread._local()

    def call(self, op, fields):
        return self._link().ask("call", op, fields)

    def notify(self, op, fields):
        self._link().ask("notify", op, fields)

    def log(self, level, message, file, line):
        self._link().ask("log", int(level), message, file, line)

    def infer(self, request, decoupled):
        link = self._link()
        plain = _plain_request(request)
        if not decoupled:
            return _response(link.ask("infer", plain))
        number = link.ask("stream", plain)

        def take():
            response, finished = link.ask("take", number)
            return _response(response), finished

        return ResponseIterator(take, lambda: link.ask("stop", number))

    def infer_async(self, request, decoupled):
        import asyncio

        return asyncio.get_running_loop().run_in_executor(None, self.infer, request, decoupled)

    def _link(self):
        """This thread's connection with the worker. A process that this one forks has other ones."""
        own = self._own
        if getattr(own, "process", None) != os.getpid():
            own.link, own.process = _Link(self._door), os.getpid()
        return own.link


class _Link:
    """One end of a pair of sockets, whose other end the worker has."""

    def __init__(self, door):
        theirs, self._sock = _pair(_socket.SOCK_STREAM)
        descriptor = _DESCRIPTOR.pack(theirs.fileno())
        try:
            door.sendmsg([b"k"], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, descriptor)])
        except OSError:
            raise TritonModelException(_GONE) from None
        finally:
            theirs.close()
        self._lock = _thread.allocate_lock()

    def __del__(self):
        self._sock.close()

    def ask(self, *question):
        try:
            with self._lock:
                _send(self._sock, question)
                worked, answer = _receive(self._sock)
        except (EOFError, OSError):
            raise TritonModelException(_GONE) from None
        if not worked:
            raise TritonModelException(answer)
        return answer
