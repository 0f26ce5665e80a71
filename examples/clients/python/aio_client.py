"""Many requests at once from one thread, over gRPC with asyncio: pip install 'tritonclient[grpc]'"""

import asyncio
import sys

import numpy as np
import tritonclient.grpc.aio as grpcclient
from tritonclient.utils import InferenceServerException

AT_ONCE = 8


def pair(number):
    tensors = []
    for name in ("INPUT0", "INPUT1"):
        tensor = grpcclient.InferInput(name, [1, 16], "INT32")
        tensor.set_data_from_numpy(np.full((1, 16), number, dtype=np.int32))
        tensors.append(tensor)
    return tensors


async def twice(client, turns, number):
    """The semaphore bounds how many requests are on their way: a server refuses what it has no room for."""
    async with turns:
        result = await client.infer("simple", pair(number), client_timeout=30)
    return int(result.as_numpy("OUTPUT0")[0, 0])


async def main(url="localhost:8001"):
    async with grpcclient.InferenceServerClient(url) as client:
        print("ready:", "yes" if await client.is_server_ready() else "no")
        turns = asyncio.Semaphore(AT_ONCE)
        print("doubled:", *await asyncio.gather(*(twice(client, turns, number) for number in range(20))))
        try:
            await client.infer("nothing", pair(1))
        except InferenceServerException as error:
            print("refused:", error.message())


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
