"""The life of a worker: HELLO, then what the server asks on the work socket, until it closes."""

import os
import sys

from . import wire


def run(fds):
    """Serves until the server ends the worker; does not return."""
    from .process import leave, settle

    settle()
    try:
        import numpy
    except Exception as error:
        _refuse(fds[0], error)
        leave(1)
    from .link import Link

    worker = Worker(Link(fds))
    worker.greet(numpy.__version__)
    try:
        worker.serve()
    except wire.Closed:
        leave(1)
    leave(0)


def _refuse(fd, error):
    """HELLO of an interpreter that cannot serve."""
    text = "Python %s (%s) cannot import numpy: %s: %s" % (
        sys.version.split()[0], sys.executable, type(error).__name__, error,
    )
    raw = text.encode("utf-8", "replace")[: wire.PACKET_LIMIT // 2]
    wire.connect(fd).send(wire.HEADER.pack(wire.HELLO, wire.ERROR, 0, 0, 0, len(raw), 0) + raw)


def _calm_collector():
    """What is loaded by now stays: the collector need not walk it again and again while requests come and go,
    which cost nearly half of a small request. A model that sets its own thresholds keeps them."""
    import gc

    gc.freeze()
    if gc.get_threshold()[0] <= 2000:
        gc.set_threshold(10000, 20, 50)


class Worker:
    def __init__(self, link):
        self._link = link
        self._receiver = wire.Receiver(link.work)
        self._side = None
        self._class = None
        self._model = None
        self._executor = None

    def greet(self, numpy_version):
        python = ".".join(map(str, sys.version_info[:3]))
        text = '{"python": "%s", "numpy": "%s", "pid": %d}' % (python, numpy_version, os.getpid())
        self._link.send(self._link.work, wire.HELLO, 0, 0, 0, [text.encode()])

    def serve(self):
        link = self._link
        receive = self._receiver.receive
        while True:
            kind, _, count, ident, buffer, meta, data = link.open(receive())
            if kind == wire.EXECUTE and self._executor is not None:
                self._executor.run(buffer, meta, data, count, ident)
            elif kind == wire.FINALIZE:
                self._finalize()
                return
            else:
                self._prepare(kind, link.text(buffer, meta, data))
            del buffer

    def _prepare(self, kind, text):
        if kind == wire.INIT:
            self._reply(wire.READY, self._initialize, text)
        elif kind == wire.COMPLETE:
            self._reply(wire.COMPLETED, self._complete, text)

    def _reply(self, kind, action, text):
        """Answers with the JSON that `action` gives, or with what went wrong."""
        import json

        from .errors import describe

        try:
            answer = json.dumps(action(json.loads(text))).encode()
        except BaseException as error:
            self._link.fail(self._link.work, kind, 0, describe(error))
            return
        self._link.send(self._link.work, kind, 0, 0, 0, [answer])

    def _open(self, settings):
        """Connects pb_utils with the server and imports the model's code."""
        from . import calls, log
        from .loader import load
        from .process import guard_children
        from .side import Side

        if self._side is None:
            self._side = Side(self._link)
            self._side.on_log_level = log.set_levels_json
            calls.attach(self._link, self._side)
            guard_children(self._link, calls.detach)
        self._link.outbox.limit = settings.get("arena_limit")
        calls.session.version_dir = settings.get("version_dir", "")
        if self._class is None:
            self._class = load(settings["model_py"], settings["version_dir"], settings["model_dir"])

    def _initialize(self, settings):
        from . import calls, log
        from .executor import Executor, is_ready

        self._link.inline_limit = settings.get("inline_limit", wire.DEFAULT_INLINE_LIMIT)
        log.set_levels(settings.get("log_level", {}))
        arguments = settings.get("args", {})
        calls.session.instance = arguments.get("model_instance_name", "")
        self._open(settings)
        self._side.start()
        model = self._class()
        if hasattr(model, "initialize"):
            model.initialize(dict(arguments))
        self._model = model
        self._executor = Executor(self._link, model, settings)
        calls.session.executing = True
        has_is_ready = hasattr(model, "is_ready")
        if has_is_ready:
            self._side.is_ready = lambda: is_ready(model)
        _calm_collector()
        return {"has_is_ready": has_is_ready}

    def _complete(self, settings):
        """The configuration as the model completes it; None when it does not."""
        from .errors import Complaint
        from .model_config import ModelConfig

        self._open(settings)
        complete = getattr(self._class, "auto_complete_config", None)
        if complete is None:
            return None
        config = complete(ModelConfig(settings["config"]))
        if not isinstance(config, ModelConfig):
            raise Complaint(
                "auto_complete_config function in model '%s' must return a valid pb.ModelConfig object."
                % settings["config"].get("name", "")
            )
        return config.as_dict()

    def _finalize(self):
        from . import calls, coroutines, log
        from .errors import describe
        from .process import run_exit_handlers

        calls.session.executing = False
        coroutines.stop()
        if self._model is not None and hasattr(self._model, "finalize"):
            try:
                self._model.finalize()
            except BaseException as error:
                log.emit(log.LogLevel.INFO, describe(error), __file__, 0)
        self._model = self._executor = None
        if self._side is not None:
            self._side.is_ready = None
        run_exit_handlers()
        self._link.closing = True
        self._link.send(self._link.work, wire.FINALIZED, 0, 0, 0)
