"""A link between Envoy and a server, which a play cuts as a partition does: nothing passes and nobody is told."""

import asyncio
import contextlib
import threading

CHUNK = 64 * 1024


class Link:
    """Passes connections at `address` on to a server until it is `cut`, and again, with all that waited, when it is `mended`."""

    def __init__(self, host, target):
        self.host, self.target = host, target
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self.thread.start()
        self.tasks = set()
        self.address = self.run(self.open())

    def run(self, work):
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(60)

    async def open(self):
        self.passes = asyncio.Event()
        self.passes.set()
        self.server = await asyncio.start_server(self.accept, self.host, 0)
        return "{}:{}".format(*self.server.sockets[0].getsockname())

    async def accept(self, reader, writer):
        self.tasks.add(asyncio.current_task())
        try:
            await self.passes.wait()
            host, port = self.target.rsplit(":", 1)
            with contextlib.suppress(OSError):
                their_reader, their_writer = await asyncio.open_connection(host, int(port))
                await asyncio.gather(self.pump(reader, their_writer), self.pump(their_reader, writer))
        finally:
            self.tasks.discard(asyncio.current_task())
            writer.close()

    async def pump(self, reader, writer):
        """Passes bytes on, then the end of the connection."""
        with contextlib.suppress(OSError):
            while data := await reader.read(CHUNK):
                await self.passes.wait()
                writer.write(data)
                await writer.drain()
        await self.passes.wait()
        writer.close()

    def cut(self):
        self.loop.call_soon_threadsafe(self.passes.clear)

    def mend(self):
        self.loop.call_soon_threadsafe(self.passes.set)

    async def close(self):
        self.server.close()
        tasks = list(self.tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def stop(self):
        self.run(self.close())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()
        self.loop.close()
