"""pb_utils.InferenceResponseSender: responses sent while or after `execute` runs, from any thread."""

import _thread

from . import codec, server, wire
from .arguments import Unfit, integer
from .errors import Failure, TritonModelException, incompatible
from .message_body import MessageBody
from .response import InferenceResponse

COMPLETE_FINAL = 1

_SIGNATURE = "(self: InferenceResponseSender, response: InferenceResponse = None, flags: int = 0) -> None"
_INTERNAL = 2

# Reentrant: the garbage collector may end a sender (__del__) while its thread is inside another.
_state = _thread.RLock()


class Senders:
    """Makes the response senders of one model."""

    __slots__ = ("connection", "decoupled", "prefix", "declared")

    def __init__(self, connection, decoupled, prefix, declared):
        self.connection = connection
        self.decoupled = decoupled
        self.prefix = prefix
        self.declared = declared

    def make(self, key, wanted):
        return InferenceResponseSender(self, key, wanted)

    def send(self, key, wanted, response, flags):
        """Sends a response, or the end of the responses when there is none."""
        connection = self.connection
        final = wire.FINAL if flags else 0
        if response is None:
            connection.send(connection.events, wire.RESPONSE, final | wire.EMPTY, 0, key)
            return
        body = MessageBody(connection)
        try:
            parts = codec.write_response(body, key, response, wanted)
            if wanted and len(parts) != len(response._outputs) + 2:
                self.declared.note(response)
            connection.send(connection.events, wire.RESPONSE, final, 1, key, parts, body.data)
        except Exception as error:  # for the model it is sent: the client must get the error
            body.rewind((0, 0, 0))
            self.send_error(key, Failure("cannot send the response: %s" % error), flags)

    def send_error(self, key, failure, flags=COMPLETE_FINAL):
        connection, flags = self.connection, wire.FINAL if flags else 0
        text = self.prefix + failure.message
        try:
            error = codec.write_error(key, text, _INTERNAL, b"", failure.traceback)
            connection.send(connection.events, wire.RESPONSE, flags, 1, key, error)
        except OSError:  # too long for a packet, and no memory to spill it to
            error = codec.write_error(key, text[:4096], _INTERNAL)
            connection.send(connection.events, wire.RESPONSE, flags, 1, key, error)


class InferenceResponseSender:
    """Sends the responses of one request."""

    __slots__ = ("_senders", "_key", "_wanted", "_sent", "_closed", "__weakref__")

    def __init__(self, senders, key, wanted):
        self._senders = senders
        self._key = key
        self._wanted = wanted
        self._sent = 0
        self._closed = False

    def send(self, response=None, flags=0):
        try:
            flags = integer(flags, 0, 1 << 32)
            if response is not None and not isinstance(response, InferenceResponse):
                raise Unfit
        except Unfit:
            raise incompatible("send", _SIGNATURE, (response, flags)) from None
        if flags not in (0, COMPLETE_FINAL):
            raise TritonModelException("Unable to send response. Unsupported flag provided.")
        if flags == 0 and response is None:
            raise TritonModelException(
                "Inference Response object must be provided when the response flags is set to zero."
            )
        if self._senders.connection.closing:
            raise TritonModelException("Unable to send response. The process that executes the model sends its responses.")
        self._account(response, flags)
        self._senders.send(self._key, self._wanted, response, flags)

    def is_cancelled(self):
        return server.call("is_cancelled", key=self._key)

    def _account(self, response, flags):
        """Checks that this response may be sent now, and counts it."""
        with _state:
            if not self._senders.decoupled:
                self._check_single(response, flags)
            if self._closed:
                raise TritonModelException("Unable to send response. Response sender has been closed.")
            self._closed = bool(flags)
            self._sent += 1

    def _check_single(self, response, flags):
        if response is not None and self._sent > 0:
            raise TritonModelException(
                "Unable to send response. Non-decoupled model cannot send more than one response."
            )
        if response is None and flags and self._sent == 0:
            raise TritonModelException(
                "Unable to send response. Non-decoupled model cannot send complete final before sending a response."
            )

    def _close(self):
        with _state:
            closed, self._closed = self._closed, True
        return closed

    def _give_back(self):
        """Nothing more is sent for the request, which goes back to its scheduler behind all that was."""
        if not self._close() and self._senders.decoupled:
            connection = self._senders.connection
            connection.send(connection.events, wire.RESPONSE, wire.EMPTY, 0, self._key)

    def _fail(self, failure):
        """Ends the request with an error, unless it has ended; whether the client gets the error."""
        if self._close():
            return False
        if self._sent and not self._senders.decoupled:
            # It has its only response.
            self._senders.send(self._key, self._wanted, None, COMPLETE_FINAL)
            return False
        self._senders.send_error(self._key, failure)
        return True

    def __del__(self):
        senders = self._senders
        if self._closed or senders.connection.closing:
            return
        try:
            self._abandon()
        except Exception:  # the connection may be gone
            pass

    def _abandon(self):
        """The model can send nothing any more: ends the request for the client."""
        if self._close():
            return
        if self._sent or self._senders.decoupled:
            self._senders.send(self._key, self._wanted, None, COMPLETE_FINAL)
        else:
            self._senders.send_error(self._key, Failure("the model dropped the request without a response"))


InferenceResponseSender.__module__ = "c_python_backend_utils"
