"""HTTP/1.1 by hand: heads that no client library sends, bodies that come as slowly as we like."""

import http.client
import socket
import threading
import time


def connect(address, timeout=30, receive_buffer=None):
    found = socket.socket()
    if receive_buffer:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
    found.settimeout(timeout)
    found.connect(address)
    return found


def head(method, path, length=None, **headers):
    lines = [f"{method} {path} HTTP/1.1", "Host: x"]
    lines += [f"Content-Length: {length}"] if length is not None else []
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def post(path, body, **headers):
    """The bytes of a whole request."""
    return head("POST", path, len(body), **headers) + body


def answer(connection):
    """(status, body); (0, reason) where the server said nothing more."""
    reply = http.client.HTTPResponse(connection)
    try:
        reply.begin()
        return reply.status, reply.read()
    except (OSError, http.client.HTTPException) as error:
        return 0, type(error).__name__.encode()


def exchange(address, sent, timeout=60):
    """One request on a connection of its own."""
    try:
        connection = connect(address, timeout)
    except OSError as error:
        return 0, type(error).__name__.encode()
    with connection:
        try:
            connection.sendall(sent)
        except OSError:
            pass  # refused before all was sent; the answer may be there all the same
        return answer(connection)


def is_closed(connection):
    """Whether the server has ended the connection (a half-sent request may have been answered first)."""
    connection.settimeout(0)
    try:
        while connection.recv(65536):
            pass
        return True
    except (BlockingIOError, TimeoutError):
        return False
    except OSError:
        return True


def together(count, work, seconds=None):
    """`work(number)` on so many threads at once, again and again for `seconds`; what was returned, in one list."""
    found, deadline = [], time.monotonic() + (seconds or 0)

    def repeat(number):
        while True:
            found.append(work(number))
            if time.monotonic() >= deadline:
                return

    threads = [threading.Thread(target=repeat, args=(number,), daemon=True) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(180)
    return found


def statuses(answers):
    """For example "200 x12, 503 x3"; 0 stands for no answer."""
    return ", ".join(f"{status} x{answers.count(status)}" for status in sorted(set(answers)))


def many(address, count, sent, keep_trying=False):
    """Connections on each of which `sent` was sent; those that could be made."""
    held = []
    for _ in range(count):
        try:
            connection = connect(address, 5)
            held.append(connection)
            connection.sendall(sent)
        except OSError:
            if not keep_trying:
                break
    return held


def close(connections):
    for connection in connections:
        connection.close()
