"""Runs a program that the kernel ends at once when it opens a connection or makes a socket for datagrams (without which
no name is looked up): `without_connections.py PROGRAM ARGUMENT...`."""

import os
import sys

import without_syscall as filters

# x86-64: the calls, and the bits of a socket's type behind its flags.
_CONNECT, _SOCKET, _TYPE, _DATAGRAM = 42, 41, 0xF, 2
_END, _AND = 0x80000000, 0x54
_NUMBER, _SECOND_ARGUMENT = 0, 24
STEPS = [
    (filters._LOAD, 0, 0, _NUMBER),
    (filters._EQUALS, 4, 0, _CONNECT),
    (filters._EQUALS, 0, 4, _SOCKET),
    (filters._LOAD, 0, 0, _SECOND_ARGUMENT),
    (_AND, 0, 0, _TYPE),
    (filters._EQUALS, 0, 1, _DATAGRAM),
    (filters._RETURN, 0, 0, _END),
    (filters._RETURN, 0, 0, filters._ALLOW),
]

if __name__ == "__main__":
    filters.install(STEPS)
    os.execv(sys.argv[1], sys.argv[1:])
