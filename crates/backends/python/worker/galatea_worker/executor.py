"""Runs a model's `execute`, checks what it returned, and answers the server."""

from . import codec, coroutines, log, wire
from .errors import Failure, TritonModelException, WorkerError, call, describe, failure_of
from .message_body import MessageBody
from .outputs import DeclaredOutputs
from .request import RELEASE_RESCHEDULE
from .response import InferenceResponse
from .senders import Senders

_INTERNAL = 2


class Executor:
    def __init__(self, connection, model, settings):
        self._connection = connection
        self._model = model
        self._path = settings["model_py"]
        self._instance = settings.get("args", {}).get("model_instance_name", "")
        self._decoupled = bool(settings.get("decoupled"))
        self._prefix = "Failed to process the request(s) for model '%s', message: " % self._instance
        self._declared = DeclaredOutputs(settings)
        self._senders = Senders(connection, self._decoupled, self._prefix, self._declared)
        self._execute = getattr(model, "execute", None)

    def run(self, buffer, meta, data, count, ident):
        """One EXECUTE message and its answer."""
        try:
            requests = codec.read_requests(self._connection, buffer, meta, data, count, self._senders)
        except Exception as error:
            self._fail_all(ident, Failure("cannot read the requests: %r" % error))
            return
        if self._decoupled:
            self._open_senders(requests)
        try:
            returned = self._call(requests)
            answers = self._match(requests, returned)
        except BaseException as error:
            self._fail(requests, ident, error)
            return
        # What the requests held can be given back with the answer, when the answer does not lie in it.
        del requests, returned, buffer
        self._answer(answers, ident)

    def _open_senders(self, requests):
        """A decoupled model may drop a request: its sender then ends it."""
        for request in requests:
            request.get_response_sender()

    def _call(self, requests):
        execute = self._execute
        if execute is None:
            raise WorkerError("Python model %s does not implement `execute` method." % self._path)
        returned = call(execute, requests)
        if returned.__class__ is list or returned is None or not coroutines.is_coroutine(returned):
            return returned
        if not self._decoupled:
            return coroutines.result_of(returned)
        senders = [request.get_response_sender() for request in requests]
        coroutines.in_background(returned, lambda failure: self._end_all(senders, failure))
        return None

    def _end_all(self, senders, failure):
        """Ends requests that have nothing but senders; an error that no client gets any more is logged."""
        if not _end(senders, failure):
            text = "\n".join([self._prefix + failure.message, failure.traceback])
            log.emit(log.LogLevel.ERROR, text.rstrip(), self._path, 0)

    def _match(self, requests, returned):
        """[(key, requested outputs, response, or failure, or None to reschedule)] of what is to be answered."""
        if self._decoupled:
            if returned is not None:
                raise WorkerError(
                    "Python model '%s' is using the decoupled mode and the execute function must return None."
                    % self._instance
                )
            return [_rescheduled(r) for r in requests if r._release_flags == RELEASE_RESCHEDULE]
        if returned is None:
            returned = self._nothing(requests)
        if not isinstance(returned, list):
            raise WorkerError("Expected a list in the execute return, found type '%s'." % type(returned))
        if len(returned) != len(requests):
            raise WorkerError(
                "Number of InferenceResponse objects do not match the number of InferenceRequest objects. "
                "InferenceRequest(s) size is:%d, and InferenceResponse(s) size is:%d\n" % (len(requests), len(returned))
            )
        answers = []
        for request, response in zip(requests, returned):
            if response.__class__ is InferenceResponse and request._sender is None and request._release_flags == 1:
                answers.append((request._key, request._outputs, response))
            else:
                self._match_unusual(answers, request, response)
        return answers

    def _nothing(self, requests):
        """`execute` returned None: allowed when every response comes from a response sender or another execution."""
        if any(r._sender is not None or r._release_flags == RELEASE_RESCHEDULE for r in requests):
            return [None] * len(requests)
        return None

    def _match_unusual(self, answers, request, response):
        """Nothing returned, something wrong returned, or a request that has a response sender."""
        sender = request._sender
        if request._release_flags == RELEASE_RESCHEDULE:
            if response is not None:
                text = "Expected a None object in the execute function return list for reschduled request, found type "
                raise WorkerError("%s'%s'." % (text, type(response)))
            answers.append(_rescheduled(request))
        elif sender is not None and (response is None or sender._sent):
            # What was sent is the answer, whatever is returned besides.
            return
        elif not isinstance(response, InferenceResponse):
            text = "Expected an 'InferenceResponse' object in the execute function return list, found type '%s'."
            answers.append((request._key, None, Failure(text % type(response))))
        else:
            if sender is not None:
                _account(sender, response)
            answers.append((request._key, request._outputs, response))

    def _answer(self, answers, ident, flags=0):
        connection = self._connection
        body = MessageBody(connection)
        parts = []
        for key, wanted, response in answers:
            if response.__class__ is InferenceResponse:
                mark = body.mark()
                try:
                    written = codec.write_response(body, key, response, wanted)
                    if wanted and len(written) != len(response._outputs) + 2:
                        self._declared.note(response)
                    parts += written
                except Exception as error:
                    body.rewind(mark)
                    parts += codec.write_error(key, self._prefix + describe(_unsendable(error)), _INTERNAL)
            elif response is None:
                parts += codec.write_rescheduled(key)
            else:
                parts += codec.write_error(key, self._prefix + response.message, _INTERNAL, b"", response.traceback)
        try:
            connection.send(connection.commands, wire.EXECUTED, flags, len(answers), ident, parts, body.data)
        except OSError as error:
            body.rewind((0, 0, 0))
            self._fail_all(ident, failure_of(_unsendable(error)))

    def _fail_all(self, ident, failure):
        """Answers the execution with an error for all of its requests."""
        self._connection.send_failure(self._connection.commands, wire.EXECUTED, ident, failure)

    def _fail(self, requests, ident, error):
        """The whole execution failed: nothing may be sent for its requests any more.

        Requests with a sender get the error through it: it must not overtake their responses. The traceback goes
        with one of the errors only, so that it is logged once.
        """
        failure = failure_of(error)
        senders = [request._sender for request in requests if request._sender is not None]
        others = [request for request in requests if request._sender is None]
        for request in others:
            request._senders = None
        if not senders:
            self._fail_all(ident, failure)
            return
        if not others:
            self._end_all(senders, failure)
            self._answer([], ident, wire.RAISED)
            return
        reported = _end(senders, failure)
        failures = [Failure(failure.message, "" if reported or i else failure.traceback) for i in range(len(others))]
        answers = [(request._key, None, failure) for request, failure in zip(others, failures)]
        self._answer(answers, ident, wire.RAISED)


def _account(sender, response):
    try:
        sender._account(response, wire.FINAL)
    except TritonModelException as error:
        raise WorkerError(str(error)) from None


def _rescheduled(request):
    """A request that goes back to its scheduler; the sender of this execution must not end it."""
    if request._sender is not None:
        request._sender._give_back()
    return request._key, None, None


def _unsendable(error):
    if isinstance(error, OSError):
        return WorkerError("cannot send the response: shared memory of the outputs: %s" % (error.strerror or error))
    return error


def _end(senders, failure):
    """Ends the requests of an execution that failed, unless they have ended; whether any client gets the error."""
    reported = False
    for sender in senders:
        reported = sender._fail(Failure(failure.message) if reported else failure) or reported
    return reported


def is_ready(model):
    """The result of the model's own `is_ready` (a plain function or a coroutine function); True when it has none."""
    check = getattr(model, "is_ready", None)
    if check is None:
        return True
    ready = check()
    if coroutines.is_coroutine(ready):
        ready = coroutines.result_of(ready)
    if not isinstance(ready, bool):
        raise WorkerError("is_ready() must return a bool, found type '%s'." % type(ready))
    return ready
