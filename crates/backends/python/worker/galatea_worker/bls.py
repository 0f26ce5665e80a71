"""BLS: requests of model code to other models, `InferenceRequest.exec` and `async_exec`."""

import struct

from . import codec, wire
from .message_body import MessageBody
from .response import InferenceResponse, ResponseIterator, TritonError
from .server import session

_FAILED = "An error occurred while performing BLS request."


def _start(request, decoupled, notify=None):
    """Sends a request to another model; the call its responses belong to."""
    body = MessageBody(session.connection)
    try:
        parts = codec.write_request(body, request)
        flags = wire.DECOUPLED if decoupled else 0
        return session.channel.call(wire.INFER, flags, parts, body.data, notify)
    except BaseException:
        body.rewind((0, 0, 0))
        raise


def _failed(error):
    return InferenceResponse([], TritonError(str(error) or _FAILED))


def infer(request, decoupled):
    """`exec`: the response, or an iterator over several."""
    try:
        call = _start(request, decoupled)
    except (OSError, ValueError, struct.error) as error:
        return _failed_stream(error) if decoupled else _failed(error)
    if decoupled:
        return _stream(call)
    while True:
        flags, response = session.channel.wait(call)
        if response is not None or flags & wire.FINAL:
            session.channel.end(call)
            return InferenceResponse([]) if response is None else response


def _failed_stream(error):
    return ResponseIterator(lambda: (_failed(error), True), lambda: None)


def _stream(call):
    channel = session.channel

    def take():
        flags, response = channel.wait(call)
        return InferenceResponse([]) if response is None else response, bool(flags & wire.FINAL)

    def stop():
        connection = session.connection
        connection.send(connection.events, wire.CANCEL, 0, 0, call.ident)

    return ResponseIterator(take, stop)


def infer_async(request, decoupled):
    """`async_exec`: a future of the response, or of the iterator once the first response is there."""
    import asyncio

    loop = asyncio.get_running_loop()
    future = loop.create_future()

    def complete(call):
        if future.done():
            return
        if decoupled:
            future.set_result(_stream(call))
            return
        flags, response = call.results.popleft()
        future.set_result(InferenceResponse([]) if response is None else response)

    def notify(call):
        try:
            loop.call_soon_threadsafe(complete, call)
        except RuntimeError:  # the loop is closed
            pass

    try:
        _start(request, decoupled, notify)
    except (OSError, ValueError, struct.error) as error:
        future.set_result(_failed_stream(error) if decoupled else _failed(error))
    return future
