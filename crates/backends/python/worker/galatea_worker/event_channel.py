"""The events socket: what comes from the server at any time, and which thread reads it.

The leader/followers pattern: a thread that waits for a result reads the socket itself (it leads), so a result costs
no hop between threads; other waiting threads follow and are woken by the leader. While no thread waits, a background
thread polls the socket. It only peeks: a thread that starts to wait takes the lead from it without asking.
"""

import _thread
import os
import select
from collections import deque

from . import codec, wire
from .errors import failure_of

# How long the background thread leaves the socket alone after a thread has waited: calls come in bursts.
_LEAVE_ALONE_MS = 50
# Blocks that models dropped go back with the next message; this is how long they wait for one.
_RELEASE_AFTER_MS = 1000

_POLLING = object()
_READING = object()


class Call:
    """Something that has one or several results."""

    __slots__ = ("ident", "results", "wake", "notify")

    def __init__(self, ident, notify=None):
        self.ident = ident
        self.results = deque()
        self.wake = None
        self.notify = notify


class EventChannel:
    """Calls with their results, and messages that need no call."""

    def __init__(self, connection):
        self._connection = connection
        self._receiver = wire.Receiver(connection.events)
        self._mutex = _thread.allocate_lock()
        self._leader = None
        self._followers = deque()
        self._waited = False
        self._calls = {}
        self._last_call = 0
        # Open calls with `notify`: while there are any, the background thread has to read the socket.
        self._notified = 0
        self._ticking = False
        self._wake_read, self._wake_write = os.pipe()
        os.set_blocking(self._wake_write, False)
        os.set_blocking(self._wake_read, False)
        # Set once the model is initialized: () -> bool
        self.is_ready = None
        self.on_log_level = None

    # Sending

    def call(self, kind, flags, parts, data=(), notify=None):
        """Sends something that has a result; the call to wait on, or `notify` is called for each result."""
        with self._mutex:
            self._last_call += 1
            call = Call(self._last_call, notify)
            self._calls[call.ident] = call
            self._notified += notify is not None
            idle = notify is not None and self._leader is None
        try:
            self._connection.send(self._connection.events, kind, flags, 1, call.ident, parts, data)
        except BaseException:
            self.end(call)
            raise
        if idle:
            self._wake()
        return call

    def end(self, call):
        """No more results are wanted."""
        with self._mutex:
            if self._calls.pop(call.ident, None) is not None and call.notify is not None:
                self._notified -= 1

    # Waiting

    def wait(self, call):
        """The next result of a call."""
        results = call.results
        while not results:
            wake = None
            with self._mutex:
                if results:
                    break
                if self._leader is None or self._leader is _POLLING:
                    self._leader = call
                else:
                    wake = call.wake = _thread.allocate_lock()
                    wake.acquire()
                    self._followers.append(call)
            if wake is not None:
                wake.acquire()
                continue
            try:
                while not results:
                    self._dispatch(self._receiver.receive())
            except wire.Closed:
                os._exit(1)
            finally:
                self._step_down()
        return results.popleft()

    def _step_down(self):
        with self._mutex:
            self._leader = None
            self._waited = True
            promoted = self._promote()
            wake = not promoted and self._notified
        if wake:
            self._wake()

    def _promote(self):
        """Wakes a follower that still waits, to lead next. Called with the mutex held."""
        while self._followers:
            follower = self._followers.popleft()
            if follower.wake is not None:
                follower.wake.release()
                follower.wake = None
                return True
        return False

    # Reading

    def _dispatch(self, packet):
        kind, flags, count, ident, buffer, meta, data = self._connection.open(packet)
        if kind == wire.INFERRED:
            self._complete(ident, (flags, self._read_response(flags, buffer, meta, data)), flags & wire.FINAL)
        elif kind == wire.CALL_RESULT:
            self._complete(ident, (flags, count, self._connection.text(buffer, meta, data)), True)
        elif kind == wire.READINESS_QUERY:
            _thread.start_new_thread(self._answer_readiness, (ident,))
        elif kind == wire.TRIM:
            self._connection.outbox.trim()
            self._connection.send(self._connection.events, wire.TRIMMED, 0, 0, ident)
        elif kind == wire.LOG_LEVEL and self.on_log_level is not None:
            self.on_log_level(self._connection.text(buffer, meta, data))

    def _read_response(self, flags, buffer, meta, data):
        if flags & wire.EMPTY:
            return None
        return codec.read_response(self._connection, buffer, meta, data)

    def _complete(self, ident, result, final):
        with self._mutex:
            call = self._calls.get(ident)
            if call is None:
                return
            if final:
                del self._calls[ident]
                self._notified -= call.notify is not None
            call.results.append(result)
            if call.wake is not None:
                call.wake.release()
                call.wake = None
            notify = call.notify
        if notify is not None:
            notify(call)

    def _answer_readiness(self, ident):
        connection = self._connection
        try:
            ready = self.is_ready is None or self.is_ready()
            connection.send(connection.events, wire.READINESS, 0, 1 if ready else 0, ident)
        except BaseException as error:
            connection.send_failure(connection.events, wire.READINESS, ident, failure_of(error))

    # The background thread

    def start(self):
        self._connection.inbox.on_pending = self._blocks_pending
        _thread.start_new_thread(self._serve, ())

    def _wake(self):
        try:
            os.write(self._wake_write, b"\0")
        except BlockingIOError:  # the thread has plenty of wake-ups to read
            pass

    def _blocks_pending(self):
        if not self._ticking:
            self._ticking = True
            self._wake()

    def _serve(self):
        peek = select.poll()
        peek.register(self._wake_read, select.POLLIN)
        peek.register(self._connection.events, select.POLLIN)
        wakes = select.poll()
        wakes.register(self._wake_read, select.POLLIN)
        try:
            while True:
                leads = self._take_lead()
                events = (peek if leads else wakes).poll(self._timeout(leads))
                self._handle(events)
        except wire.Closed:
            os._exit(1)

    def _take_lead(self):
        """Whether this thread polls the socket until the next event."""
        with self._mutex:
            if self._leader is None and (self._notified or not self._waited):
                self._leader = _POLLING
            self._waited = False
            return self._leader is _POLLING

    def _timeout(self, leads):
        if not leads:
            return _LEAVE_ALONE_MS
        return _RELEASE_AFTER_MS if self._ticking else None

    def _handle(self, events):
        fds = [fd for fd, _ in events]
        if self._wake_read in fds:
            os.read(self._wake_read, 4096)
        if self._connection.events.fileno() in fds:
            self._read_one()
        if not events and self._ticking:
            self._send_releases()

    def _read_one(self):
        """Reads one message, unless a waiting thread has taken the lead since."""
        with self._mutex:
            if self._leader is not None and self._leader is not _POLLING:
                return
            self._leader = _READING
        try:
            self._dispatch(self._receiver.receive())
        finally:
            with self._mutex:
                self._leader = None
                self._promote()

    def _send_releases(self):
        """After a second without a message: sends pending blocks alone; stops ticking when there are none."""
        if self._connection.inbox.pending:
            self._connection.send(self._connection.events, wire.RELEASE, 0, 0, 0)
        else:
            self._ticking = False
            if self._connection.inbox.pending:
                self._ticking = True
