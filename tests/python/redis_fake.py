"""A server with a few commands of Redis that hangs, refuses connections and comes back when a test says so."""

import contextlib
import socket
import threading


class RedisFake:
    """`look_ups` and `greetings` count the commands GET and PING that came."""

    def __init__(self):
        self.values, self.look_ups, self.greetings = {}, 0, 0
        self.lock, self.connections = threading.Lock(), []
        self.answering = threading.Event()
        self.answering.set()
        self.listener = self._listen(0)
        self.port = self.listener.getsockname()[1]

    def _listen(self, port):
        listener = socket.create_server(("127.0.0.1", port))
        threading.Thread(target=self._accept, args=(listener,), daemon=True).start()
        return listener

    def _accept(self, listener):
        with contextlib.suppress(OSError):
            while True:
                connection = listener.accept()[0]
                with self.lock:
                    self.connections.append(connection)
                threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection):
        with contextlib.suppress(OSError, ValueError), connection, connection.makefile("rb") as reader:
            while head := reader.readline():
                parts = [reader.read(int(reader.readline()[1:]) + 2)[:-2] for _ in range(int(head[1:]))]
                reply = self._reply(*parts)
                if self.answering.is_set():
                    connection.sendall(reply)

    def _reply(self, command, key=None, value=None, *_):
        with self.lock:
            if command == b"GET":
                self.look_ups += 1
                found = self.values.get(key)
                return b"$-1\r\n" if found is None else b"$%d\r\n%s\r\n" % (len(found), found)
            if command == b"SET":
                self.values[key] = value
                return b"+OK\r\n"
            self.greetings += 1
            return b"+PONG\r\n"

    def settings(self, **more):
        given = {"host": "127.0.0.1", "port": self.port, **more}
        return [f"--cache-config=redis,{key}={value}" for key, value in given.items()]

    @contextlib.contextmanager
    def hanging(self):
        """It takes connections and commands, and answers nothing."""
        self.answering.clear()
        yield
        self.answering.set()

    @contextlib.contextmanager
    def refusing(self):
        """It has ended, and is started again."""
        self.stop()
        yield
        self.listener = self._listen(self.port)

    def stop(self):
        # Closing alone would not end a call of accept.
        with contextlib.suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        with self.lock:
            ended, self.connections = self.connections, []
        for connection in ended:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
