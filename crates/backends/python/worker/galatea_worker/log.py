"""pb_utils.Logger: lines that models put into the server's log."""

import enum
import json
import sys

from . import wire
from .arguments import Unfit, text
from .errors import incompatible
from .server import session

_SIGNATURE = "(message: str, level: LogLevel = INFO) -> None"


class LogLevel(enum.IntEnum):
    INFO = 0
    WARNING = 1
    ERROR = 2
    VERBOSE = 3

    __str__ = enum.Enum.__str__


_enabled = {LogLevel.INFO: True, LogLevel.WARNING: True, LogLevel.ERROR: True, LogLevel.VERBOSE: True}


def set_levels(levels):
    """The levels that the server logs: {"info", "warning", "error": bool, "verbose": number}."""
    for level in LogLevel:
        wanted = levels.get(level.name.lower())
        if wanted is not None:
            _enabled[level] = bool(wanted)


def set_levels_json(text):
    set_levels(json.loads(text))


def emit(level, message, file, line, more={}):
    connection = session.connection
    if not _enabled.get(level, True):
        return
    if session.worker is not None:
        session.worker.log(level, message, file, line)
        return
    if connection is None or connection.closing:
        sys.stderr.write("%s\n" % message)
        return
    meta = json.dumps({"file": file, "line": line, "message": message, **more}, ensure_ascii=False).encode("utf-8", "replace")
    connection.send(connection.events, wire.LOG, 0, 0, int(level), [meta])


def _log(level, message, depth=2):
    try:
        message = text(message)
    except Unfit:
        raise incompatible("log", _SIGNATURE, (message,)) from None
    caller = sys._getframe(depth)
    emit(level, message, caller.f_code.co_filename, caller.f_lineno)


class Logger:
    LogLevel = LogLevel
    INFO = LogLevel.INFO
    WARNING = LogLevel.WARNING
    ERROR = LogLevel.ERROR
    VERBOSE = LogLevel.VERBOSE

    def __init__(self):
        raise TypeError("c_python_backend_utils.Logger: No constructor defined!")

    @staticmethod
    def log(message, level=LogLevel.INFO):
        if not isinstance(level, LogLevel):
            raise incompatible("log", _SIGNATURE, (message, level))
        _log(level, message)

    @staticmethod
    def log_info(message):
        _log(LogLevel.INFO, message)

    @staticmethod
    def log_warn(message):
        _log(LogLevel.WARNING, message)

    @staticmethod
    def log_error(message):
        _log(LogLevel.ERROR, message)

    @staticmethod
    def log_verbose(message):
        _log(LogLevel.VERBOSE, message)


for _class in (LogLevel, Logger):
    _class.__module__ = "c_python_backend_utils"
