"""The main thread of a worker: HELLO, then the server's commands until the socket closes."""

import os
import sys

from . import wire


def run(fds):
    """Serves until the server ends the worker; does not return."""
    from .process import exit_process, prepare_process

    prepare_process()
    try:
        import numpy
    except Exception as error:
        _report_no_numpy(fds[0], error)
        exit_process(1)
    from .connection import Connection

    worker = Worker(Connection(fds))
    worker.send_hello(numpy.__version__)
    try:
        worker.serve()
    except wire.Closed:
        exit_process(1)
    exit_process(0)


def _report_no_numpy(fd, error):
    """HELLO of an interpreter that cannot serve."""
    text = "Python %s (%s) cannot import numpy: %s: %s" % (
        sys.version.split()[0], sys.executable, type(error).__name__, error,
    )
    raw = text.encode("utf-8", "replace")[: wire.PACKET_LIMIT // 2]
    wire.connect(fd).send(wire.HEADER.pack(wire.HELLO, wire.ERROR, 0, 0, 0, len(raw), 0) + raw)


def _tune_garbage_collector():
    """Excludes what is loaded by now from garbage collection, which otherwise took nearly half of the time of a small
    request, and collects less often. A model that sets its own thresholds keeps them."""
    import gc

    gc.freeze()
    if gc.get_threshold()[0] <= 2000:
        gc.set_threshold(10000, 20, 50)


class Worker:
    def __init__(self, connection):
        self._connection = connection
        self._receiver = wire.Receiver(connection.commands)
        self._channel = None
        self._class = None
        self._model = None
        self._executor = None

    def send_hello(self, numpy_version):
        python = ".".join(map(str, sys.version_info[:3]))
        text = '{"python": "%s", "numpy": "%s", "pid": %d}' % (python, numpy_version, os.getpid())
        self._connection.send(self._connection.commands, wire.HELLO, 0, 0, 0, [text.encode()])

    def serve(self):
        connection = self._connection
        receive = self._receiver.receive
        while True:
            kind, _, count, ident, buffer, meta, data = connection.open(receive())
            if kind == wire.EXECUTE and self._executor is not None:
                self._executor.run(buffer, meta, data, count, ident)
            elif kind == wire.FINALIZE:
                self._finalize()
                return
            else:
                self._prepare(kind, connection.text(buffer, meta, data))
            del buffer

    def _prepare(self, kind, text):
        if kind == wire.INIT:
            self._reply(wire.READY, self._initialize, text)
        elif kind == wire.COMPLETE:
            self._reply(wire.COMPLETED, self._complete, text)

    def _reply(self, kind, action, text):
        """Answers with the JSON that `action` gives, or with what went wrong."""
        import json

        from .errors import failure_of

        try:
            answer = json.dumps(action(json.loads(text))).encode()
        except BaseException as error:
            self._connection.send_failure(self._connection.commands, kind, 0, failure_of(error))
            return
        self._connection.send(self._connection.commands, kind, 0, 0, 0, [answer])

    def _open(self, settings):
        """Connects pb_utils with the server and imports the model's code."""
        from . import advice, bls, log, server
        from .event_channel import EventChannel
        from .errors import hide
        from .loader import load
        from .process import guard_children

        if self._channel is None:
            self._channel = EventChannel(self._connection)
            self._channel.on_log_level = log.set_levels_json
            server.attach(self._connection, self._channel, bls)
            guard_children(self._connection, server.detach)
        advice.isolation = settings.get("isolation")
        self._connection.outbox.limit = settings.get("arena_limit")
        server.session.version_dir = settings.get("version_dir", "")
        model = settings.get("args", {}).get("model_name") or settings.get("config", {}).get("name", "")
        advice.folders = [settings["version_dir"], settings["model_dir"]]
        advice.model_name = model
        # A backend that is written in Python has its code in a folder of its own.
        code = os.path.dirname(settings["model_py"])
        backend = {} if code.startswith(settings["model_dir"]) else {code: os.path.basename(code)}
        hide({**backend, sys.prefix: "python", sys.base_prefix: "python", settings["model_dir"]: model})
        if self._class is None:
            self._class = load(settings["model_py"], settings["version_dir"], settings["model_dir"])

    def _initialize(self, settings):
        from . import log, server
        from .errors import call
        from .executor import Executor, is_ready

        self._connection.inline_limit = settings.get("inline_limit", wire.DEFAULT_INLINE_LIMIT)
        log.set_levels(settings.get("log_level", {}))
        arguments = settings.get("args", {})
        server.session.instance = arguments.get("model_instance_name", "")
        self._open(settings)
        self._channel.start()
        model = self._class()
        if hasattr(model, "initialize"):
            call(model.initialize, dict(arguments))
        self._model = model
        self._executor = Executor(self._connection, model, settings)
        server.session.executing = True
        has_is_ready = hasattr(model, "is_ready")
        if has_is_ready:
            self._channel.is_ready = lambda: is_ready(model)
        _tune_garbage_collector()
        return {"has_is_ready": has_is_ready}

    def _complete(self, settings):
        """The configuration as the model completes it; None when it does not."""
        from .errors import WorkerError
        from .model_config import ModelConfig

        self._open(settings)
        complete = getattr(self._class, "auto_complete_config", None)
        if complete is None:
            return None
        config = complete(ModelConfig(settings["config"]))
        if not isinstance(config, ModelConfig):
            raise WorkerError(
                "auto_complete_config function in model '%s' must return a valid pb.ModelConfig object."
                % settings["config"].get("name", "")
            )
        return config.as_dict()

    def _finalize(self):
        from . import coroutines, log, server
        from .errors import describe
        from .process import run_exit_handlers

        server.session.executing = False
        coroutines.stop()
        if self._model is not None and hasattr(self._model, "finalize"):
            try:
                self._model.finalize()
            except BaseException as error:
                log.emit(log.LogLevel.INFO, describe(error), __file__, 0)
        self._model = self._executor = None
        if self._channel is not None:
            self._channel.is_ready = None
        run_exit_handlers()
        self._connection.closing = True
        self._connection.send(self._connection.commands, wire.FINALIZED, 0, 0, 0)
