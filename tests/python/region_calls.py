"""Calls about regions of shared memory and requests that name them, and what a server holds of them."""

import contextlib
import json
import os

import clients

FLAGS = ("--allow-client-shm=true", "--cache-config=local,size=1048576")


def call(server, action, name=None, body="", kind="system"):
    """Status and text of a call about regions."""
    path = f"/v2/{kind}sharedmemory{f'/region/{name}' if name is not None else ''}/{action}"
    status, _, text = clients.ask(server.http, "GET" if action == "status" else "POST", path, None if action == "status" else body)
    return status, text.decode()


def register(server, name, key, byte_size, offset=0):
    status, text = call(server, "register", name, {"key": key, "byte_size": byte_size, "offset": offset})
    assert status == 200, text


def span(region, byte_size, offset=0):
    return {"shared_memory_region": region, "shared_memory_byte_size": byte_size, "shared_memory_offset": offset}


def infer(server, model, inputs, outputs, **more):
    """Status and answer of a request whose tensors are `{name: (datatype, shape, parameters)}` and `{name: parameters}`."""
    body = {
        "inputs": [{"name": name, "datatype": kind, "shape": shape, "parameters": given} for name, (kind, shape, given) in inputs.items()],
        "outputs": [{"name": name, "parameters": given} for name, given in outputs.items()], **more,
    }
    status, _, text = clients.ask(server.http, "POST", f"/v2/models/{model}/infer", body)
    return status, json.loads(text)


def identity(server, model, region, size=64, offset=4096):
    """A request whose input is the beginning of a region, and whose output goes to its `offset`."""
    return infer(server, model, {"INPUT0": ("UINT8", [size], span(region, size))}, {"OUTPUT0": span(region, size, offset)})


def links(pid):
    """The files that the descriptors of a process are of."""
    found = []
    for number in os.listdir(f"/proc/{pid}/fd"):
        with contextlib.suppress(FileNotFoundError):
            found.append(os.readlink(f"/proc/{pid}/fd/{number}"))
    return found


def descriptors(server, files):
    """The server's descriptors of these files; of files that are gone as well."""
    return [link for link in links(server.pid) if files.prefix in link]


def mappings(server, files):
    with open(f"/proc/{server.pid}/maps", encoding="utf-8") as maps:
        return [line for line in maps if files.prefix in line]
