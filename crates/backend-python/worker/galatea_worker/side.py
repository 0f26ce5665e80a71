"""The side socket: what comes from the server at any time, and who reads it.

A thread that waits for an answer reads the socket itself (it leads), so an answer costs no hop between threads;
other waiting threads follow and are woken by the leader. While nobody waits, a background thread polls the socket.
It only peeks: whoever starts to wait takes the lead from it without asking.
"""

import _thread
import os
import select
from collections import deque

from . import codec, wire
from .errors import describe

# How long the background thread stays away after a thread has waited: calls come in bursts.
_STAY_AWAY_MS = 50
# Blocks that models dropped ride on the next message; this is how long they wait for one.
_RELEASE_AFTER_MS = 1000

_POLLING = object()
_READING = object()


class Call:
    """Something the server will answer, once or several times."""

    __slots__ = ("ident", "answers", "wake", "notify")

    def __init__(self, ident, notify=None):
        self.ident = ident
        self.answers = deque()
        self.wake = None
        self.notify = notify


class Side:
    def __init__(self, link):
        self._link = link
        self._receiver = wire.Receiver(link.side)
        self._mutex = _thread.allocate_lock()
        self._leader = None
        self._followers = deque()
        self._waited = False
        self._calls = {}
        self._last_call = 0
        self._notified = 0
        self._ticking = False
        self._wake_read, self._wake_write = os.pipe()
        os.set_blocking(self._wake_write, False)
        os.set_blocking(self._wake_read, False)
        # What the server may ask of the model, set by the executor: () -> bool
        self.is_ready = None
        self.on_log_level = None

    # Sending

    def call(self, kind, flags, parts, data=(), notify=None):
        """Sends something that will be answered; the call to wait on. `notify` runs for each answer instead."""
        with self._mutex:
            self._last_call += 1
            call = Call(self._last_call, notify)
            self._calls[call.ident] = call
            self._notified += notify is not None
            idle = notify is not None and self._leader is None
        try:
            self._link.send(self._link.side, kind, flags, 1, call.ident, parts, data)
        except BaseException:
            self.end(call)
            raise
        if idle:
            self._kick()
        return call

    def end(self, call):
        """No more answers are wanted."""
        with self._mutex:
            if self._calls.pop(call.ident, None) is not None and call.notify is not None:
                self._notified -= 1

    # Waiting

    def wait(self, call):
        """The next answer of a call."""
        answers = call.answers
        while not answers:
            wake = None
            with self._mutex:
                if answers:
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
                while not answers:
                    self._dispatch(self._receiver.receive())
            except wire.Closed:
                os._exit(1)
            finally:
                self._step_down()
        return answers.popleft()

    def _step_down(self):
        with self._mutex:
            self._leader = None
            self._waited = True
            promoted = self._promote()
            kick = not promoted and self._notified
        if kick:
            self._kick()

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
        kind, flags, count, ident, buffer, meta, data = self._link.open(packet)
        if kind == wire.INFERRED:
            self._answer(ident, (flags, self._read_response(flags, buffer, meta, data)), flags & wire.FINAL)
        elif kind == wire.REPLY:
            self._answer(ident, (flags, count, self._link.text(buffer, meta, data)), True)
        elif kind == wire.ASK_READY:
            _thread.start_new_thread(self._tell_ready, (ident,))
        elif kind == wire.TRIM:
            self._link.outbox.trim()
            self._link.send(self._link.side, wire.TRIMMED, 0, 0, ident)
        elif kind == wire.LOG_LEVEL and self.on_log_level is not None:
            self.on_log_level(self._link.text(buffer, meta, data))

    def _read_response(self, flags, buffer, meta, data):
        if flags & wire.EMPTY:
            return None
        return codec.read_response(self._link, buffer, meta, data)

    def _answer(self, ident, answer, final):
        with self._mutex:
            call = self._calls.get(ident)
            if call is None:
                return
            if final:
                del self._calls[ident]
                self._notified -= call.notify is not None
            call.answers.append(answer)
            if call.wake is not None:
                call.wake.release()
                call.wake = None
            notify = call.notify
        if notify is not None:
            notify(call)

    def _tell_ready(self, ident):
        link = self._link
        try:
            ready = self.is_ready is None or self.is_ready()
            link.send(link.side, wire.READINESS, 0, 1 if ready else 0, ident)
        except BaseException as error:
            link.fail(link.side, wire.READINESS, ident, describe(error))

    # The background thread

    def start(self):
        self._link.inbox.on_pending = self._blocks_pending
        _thread.start_new_thread(self._serve, ())

    def _kick(self):
        try:
            os.write(self._wake_write, b"\0")
        except BlockingIOError:  # plenty of wake-ups wait already
            pass

    def _blocks_pending(self):
        if not self._ticking:
            self._ticking = True
            self._kick()

    def _serve(self):
        peek = select.poll()
        peek.register(self._wake_read, select.POLLIN)
        peek.register(self._link.side, select.POLLIN)
        wakes = select.poll()
        wakes.register(self._wake_read, select.POLLIN)
        try:
            while True:
                leads = self._take_lead()
                events = (peek if leads else wakes).poll(self._patience(leads))
                self._after(events)
        except wire.Closed:
            os._exit(1)

    def _take_lead(self):
        """Whether this thread watches the socket until the next event."""
        with self._mutex:
            if self._leader is None and (self._notified or not self._waited):
                self._leader = _POLLING
            self._waited = False
            return self._leader is _POLLING

    def _patience(self, leads):
        if not leads:
            return _STAY_AWAY_MS
        return _RELEASE_AFTER_MS if self._ticking else None

    def _after(self, events):
        fds = [fd for fd, _ in events]
        if self._wake_read in fds:
            os.read(self._wake_read, 4096)
        if self._link.side.fileno() in fds:
            self._read_one()
        if not events and self._ticking:
            self._give_back()

    def _read_one(self):
        """Takes one message, unless a waiting thread has taken the lead since."""
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

    def _give_back(self):
        """A second without a message: what is pending goes out on its own; when nothing is, watching ends."""
        if self._link.inbox.pending:
            self._link.send(self._link.side, wire.RELEASE, 0, 0, 0)
        else:
            self._ticking = False
            if self._link.inbox.pending:
                self._ticking = True
