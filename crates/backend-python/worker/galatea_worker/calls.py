"""What model code asks of the server: other models' answers, model control, facts about a request."""

import json
import struct

from . import codec, wire
from .errors import TritonModelException
from .link import Body
from .response import InferenceResponse, ResponseIterator, TritonError

_ONLY_IN_EXECUTE = "BLS is only supported during the 'execute' function."
_FAILED = "An error occurred while performing BLS request."


class _Session:
    """The link of this process, while there is one and model code may use it."""

    side = None
    link = None
    instance = ""
    version_dir = ""
    executing = False


session = _Session()


def attach(link, side):
    session.link = link
    session.side = side


def detach():
    """For a forked child: it has no server."""
    session.link = session.side = None


def side():
    if session.side is None:
        raise TritonModelException("Cannot communicate with parent service")
    return session.side


def ask(op, **fields):
    """Asks the server and waits; its answer. TritonModelException with the server's text when it refuses."""
    channel = side()
    fields["op"] = op
    call = channel.call(wire.ASK, 0, [json.dumps(fields).encode()])
    flags, _, text = channel.wait(call)
    if flags & wire.ERROR:
        raise TritonModelException(text)
    return json.loads(text) if text else None


def tell(op, **fields):
    """Lets the server know something; nothing comes back. Quiet when the process is ending."""
    link = session.link
    if link is None or link.closing:
        return
    fields["op"] = op
    try:
        link.send(link.side, wire.TELL, 0, 0, 0, [json.dumps(fields).encode()])
    except OSError:
        pass


# Requests to other models


def _start(request, decoupled, notify=None):
    """Sends a request to another model; the call its responses belong to."""
    if session.side is None or not session.executing:
        raise TritonModelException(_ONLY_IN_EXECUTE)
    body = Body(session.link)
    try:
        parts = codec.write_request(body, request)
        flags = wire.DECOUPLED if decoupled else 0
        return session.side.call(wire.INFER, flags, parts, body.data, notify)
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
        return _broken_stream(error) if decoupled else _failed(error)
    if decoupled:
        return _stream(call)
    while True:
        flags, response = session.side.wait(call)
        if response is not None or flags & wire.FINAL:
            session.side.end(call)
            return InferenceResponse([]) if response is None else response


def _broken_stream(error):
    return ResponseIterator(lambda: (_failed(error), True), lambda: None)


def _stream(call):
    channel = session.side

    def take():
        flags, response = channel.wait(call)
        return InferenceResponse([]) if response is None else response, bool(flags & wire.FINAL)

    def stop():
        session.link.send(session.link.side, wire.CANCEL, 0, 0, call.ident)

    return ResponseIterator(take, stop)


def infer_async(request, decoupled):
    """`async_exec`: a future of the response, or of the iterator once the first response is there."""
    import asyncio

    loop = asyncio.get_running_loop()
    future = loop.create_future()

    def settle(call):
        if future.done():
            return
        if decoupled:
            future.set_result(_stream(call))
            return
        flags, response = call.answers.popleft()
        future.set_result(InferenceResponse([]) if response is None else response)

    def notify(call):
        try:
            loop.call_soon_threadsafe(settle, call)
        except RuntimeError:  # the loop is closed: nobody waits
            pass

    try:
        _start(request, decoupled, notify)
    except (OSError, ValueError, struct.error) as error:
        future.set_result(_broken_stream(error) if decoupled else _failed(error))
    return future


# Model control


def _control(what, op, **fields):
    try:
        return ask(op, **fields)
    except TritonModelException as error:
        raise TritonModelException(
            "%s: Failed to process the request for model '%s', message: %s" % (what, session.instance, error)
        ) from None


def load_model(model_name, config="", files=None):
    """Loads a model; `config` overrides its configuration, `files` its files (path -> bytes)."""
    if files is not None and not isinstance(files, dict):
        raise TritonModelException(
            "failed to load model '%s', files should be a dictionary of file paths and file contents" % model_name
        )
    import base64

    encoded = {}
    for path, content in (files or {}).items():
        raw = content.encode() if isinstance(content, str) else bytes(content)
        encoded[path] = base64.b64encode(raw).decode()
    _control("Failed to load model", "load_model", name=model_name, config=config, files=encoded)


def unload_model(model_name, unload_dependents=False):
    _control("Failed to unload model", "unload_model", name=model_name, unload_dependents=bool(unload_dependents))


def is_model_ready(model_name, model_version=""):
    what = "Failed to check model readiness"
    return bool(_control(what, "is_model_ready", name=model_name, version=str(model_version)))


def get_model_dir():
    """The folder of the model's version."""
    return session.version_dir
