"""Runs Arize Phoenix, in its own environment, so that it listens at this machine alone: its port of gRPC has no such setting."""

import sys

import grpc.aio
from phoenix.server.main import main

make_server = grpc.aio.server


def server_of_loopback(*args, **options):
    server = make_server(*args, **options)
    add_port = server.add_insecure_port
    server.add_insecure_port = lambda address: add_port("127.0.0.1:" + address.rpartition(":")[2])
    return server


grpc.aio.server = server_of_loopback
sys.argv = ["phoenix", "serve"]
main()
