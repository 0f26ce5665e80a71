"""TLS in front of a server that speaks none: a proxy that decrypts and passes on, with the client crate's certificates."""

import asyncio
import ssl
import threading

import servers

CERTIFICATES = servers.ROOT / "crates/perf/client/tests/certificates"
# What both sides must agree on in the handshake.
SPEAKS = {"http": "http/1.1", "grpc": "h2"}
LIMIT = 30


def certificate(name):
    """A file of the client crate's: `authority.pem` has signed all, `server` is localhost, `elsewhere` is not."""
    return CERTIFICATES / name


class TlsProxy:
    """`port` speaks TLS; `handshakes`: for each one that succeeded, the client certificate's subject or None."""

    def __init__(self, protocol, server, shows="server", asks_for_client=False):
        self._upstream = (server.grpc if protocol == "grpc" else server.http).split(":")
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(certificate(f"{shows}.pem"), certificate(f"{shows}.key"))
        self._context.set_alpn_protocols([SPEAKS[protocol]])
        if asks_for_client:
            self._context.verify_mode = ssl.CERT_REQUIRED
            self._context.load_verify_locations(certificate("authority.pem"))
        self.handshakes = []
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self.port = self._run(self._listen())

    def _run(self, work):
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(LIMIT)

    async def _listen(self):
        # Failed handshakes are the client's to report.
        self._loop.set_exception_handler(lambda *_: None)
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=self._context)
        return self._server.sockets[0].getsockname()[1]

    async def _serve(self, reader, writer):
        shown = writer.get_extra_info("peercert")
        self.handshakes.append(shown["subject"] if shown else None)
        far_reader, far_writer = await asyncio.open_connection(*self._upstream)
        await asyncio.gather(self._pass_on(reader, far_writer), self._pass_on(far_reader, writer))

    @staticmethod
    async def _pass_on(reader, writer):
        try:
            while piece := await reader.read(1 << 16):
                writer.write(piece)
                await writer.drain()
        except OSError:
            pass
        writer.close()

    async def _end(self):
        self._server.close()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._run(self._end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(LIMIT)
        self._loop.close()
