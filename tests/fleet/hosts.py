"""Hosts of a fleet: real servers, each at an address of loopback of its own, and what happens to them."""

import contextlib
import signal
import socket
import tempfile
from pathlib import Path

import clients
import servers
from callers import Versions
from links import Link
from repositories import identity_config, write_model
from waiting import eventually


SERVICES = ("http", "grpc", "metrics")


def vector_config(delay_ms=2, instances=4):
    delay = f'parameters {{ key: "execute_delay_ms" value {{ string_value: "{delay_ms}" }} }}\n'
    return identity_config("TYPE_INT64", "1", more=delay + f"instance_group [ {{ count: {instances} }} ]\n")


FAILING = identity_config("TYPE_INT64", "1", more='parameters { key: "fail" value { string_value: "execute" } }\n')


def free_ports(address):
    """A port for each service at an address that nobody else uses."""
    with contextlib.ExitStack() as held:
        sockets = [held.enter_context(socket.socket()) for _ in SERVICES]
        for one in sockets:
            one.bind((address, 0))
        return {name: one.getsockname()[1] for name, one in zip(SERVICES, sockets)}


class Host:
    """One server. It keeps its address and ports when it starts again. A linked host is reached through links."""

    def __init__(self, folder, number, is_linked=False, config=None, write=None):
        self.folder, self.address = Path(folder, f"host-{number}"), f"127.0.1.{number}"
        self.models = self.folder / "models"
        # The path of a Unix socket is short.
        self.short = tempfile.TemporaryDirectory(prefix="g")
        self.config, self.version = config or vector_config(), 1
        self.ports = free_ports(self.address)
        self.links = {}
        if write:
            write(self.models, number)
        else:
            self.write()
        self.server = self.start()
        self.addresses = {name: f"{self.address}:{port}" for name, port in self.ports.items()}
        if is_linked:
            self.links = {name: Link(self.address, self.addresses[name]) for name in ("http", "grpc")}
            self.addresses |= {name: link.address for name, link in self.links.items()}

    def write(self, backend="identity", config=None):
        write_model(self.models, "vector", "galatea", backend, config or self.config, versions=[self.version])

    def start(self):
        """A further server with the same ports; the one that runs hands them over."""
        command = [servers.galatea_binary(), "serve", f"--model-repository={self.models}", f"--takeover={self.short.name}/takeover",
                   "--model-control-mode=explicit", "--load-model=*", f"--metrics-address={self.address}"]
        for name in ("http", "grpc"):
            command += [f"--{name}-address={self.address}"]
        command += [f"--{name}-port={port}" for name, port in self.ports.items()]
        return servers.Server(command, servers.onnx_runtime())

    def envoy_host(self):
        """As `galatea deploy envoy --hosts` takes it."""
        return f"{self.addresses['http']}:{self.addresses['grpc'].rsplit(':', 1)[1]}"

    def kill(self):
        self.server.process.kill()
        self.server.wait_for_exit()

    def comes_back(self):
        self.server = self.start()

    def restart(self):
        """As an operator does: the server answers what it has and ends."""
        assert self.server.stop() == 0, self.server.text()
        self.comes_back()

    def upgrade(self):
        old, self.server = self.server, self.start()
        assert old.wait_for_exit() == 0, old.text()

    def pause(self):
        self.server.process.send_signal(signal.SIGSTOP)

    def resume(self):
        self.server.process.send_signal(signal.SIGCONT)

    def cut(self):
        for link in self.links.values():
            link.cut()

    def mend(self):
        for link in self.links.values():
            link.mend()

    def load(self):
        """Loads the model as its files are now."""
        address = f"{self.address}:{self.ports['http']}"
        status, _, answer = clients.ask(address, "POST", "/v2/repository/models/vector/load", {})
        assert status == 200, answer

    def change(self, backend, config):
        """The same version of the model with another backend or configuration."""
        self.write(backend, config)
        self.load()

    def stop(self):
        self.mend()
        self.server.process.kill()
        self.server.wait_for_exit()
        for link in self.links.values():
            link.stop()
        self.short.cleanup()


class Fleet:
    """Hosts that start and end together. `versions` are those of the model `vector` on any of them."""

    def __init__(self, folder, count=3, **settings):
        self.hosts, self.versions = [], Versions()
        try:
            for number in range(1, count + 1):
                self.hosts.append(Host(folder, number, **settings))
        except BaseException:
            self.stop()
            raise

    def reload(self, host):
        """A new version of the model on one host. Requests that began before may still get the old one."""
        host.version += 1
        self.versions.newest = max(self.versions.newest, host.version)
        host.write()
        host.load()
        self.versions.oldest = min(one.version for one in self.hosts)

    def envoy_hosts(self):
        return ",".join(host.envoy_host() for host in self.hosts)

    def stop(self):
        for host in self.hosts:
            host.stop()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()


def are_healthy(proxy, count, names=("http", "grpc")):
    """Whether Envoy sends requests to exactly so many hosts, for `eventually`."""

    def look():
        clusters = proxy.clusters()
        return all(sum(is_healthy(host) for host in clusters[name].values()) == count for name in names)

    return look


def is_healthy(host):
    """Whether a host of Envoy's list answers its health checks."""
    return not host["health_status"].get("failed_active_health_check")


def wait_until_healthy(proxy, count):
    eventually(f"Envoy sends to {count} hosts", are_healthy(proxy, count))
