"""The server as model code reaches it: calls with a result, notifications, and requests to other models."""

import json

from . import wire
from .errors import TritonModelException

_ONLY_IN_EXECUTE = "BLS is only supported during the 'execute' function."
_NO_SERVER = (
    "Cannot communicate with parent service: this process is neither that of a model instance nor forked from it "
    "(multiprocessing reaches the server with the start method 'fork')"
)


class _Session:
    """The connection of this process, while there is one and model code may use it."""

    connection = None
    channel = None
    instance = ""
    version_dir = ""
    executing = False
    # The module that sends requests to other models. Set from outside: it builds on requests, which use this module.
    bls = None
    # In a process that model code forked: what reaches the server through the worker.
    worker = None


session = _Session()


def attach(connection, channel, bls):
    session.connection = connection
    session.channel = channel
    session.bls = bls


def detach(worker):
    """For a forked child: it has no connection of its own."""
    session.connection = session.channel = None
    session.worker = worker


def bls():
    """What sends requests to other models; TritonModelException while a model may not send any."""
    if session.worker is not None:
        return session.worker
    if session.channel is None:
        raise TritonModelException(_NO_SERVER)
    if not session.executing:
        raise TritonModelException(_ONLY_IN_EXECUTE)
    return session.bls


def call(op, **fields):
    """Calls the server and waits for the result. TritonModelException with the server's text when it fails."""
    if session.worker is not None:
        return session.worker.call(op, fields)
    channel = session.channel
    if channel is None:
        raise TritonModelException(_NO_SERVER)
    fields["op"] = op
    call = channel.call(wire.CALL, 0, [_json(fields)])
    flags, _, text = channel.wait(call)
    if flags & wire.ERROR:
        raise TritonModelException(text)
    return json.loads(text) if text else None


def _json(fields):
    """JSON that the server can read: no number that JSON has not, no half of a surrogate pair."""
    return json.dumps(fields, allow_nan=False, ensure_ascii=False).encode()


def call_for(what, op, **fields):
    """`call`; the text of a failure names what failed, and the instance."""
    try:
        return call(op, **fields)
    except TritonModelException as error:
        raise TritonModelException(
            "%s: Failed to process the request for model '%s', message: %s" % (what, session.instance, error)
        ) from None


def notify(op, **fields):
    """Sends something that has no result. Does nothing when the process is ending."""
    if session.worker is not None:
        session.worker.notify(op, fields)
        return
    connection = session.connection
    if connection is None or connection.closing:
        return
    fields["op"] = op
    try:
        connection.send(connection.events, wire.NOTIFY, 0, 0, 0, [_json(fields)])
    except OSError:
        pass
