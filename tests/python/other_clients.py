"""Asks a server with clients that others make: `other_clients.py NAME HOST:PORT MODEL`. Run by the Python of other-clients. The model
answers with its input of FP32. Prints what it was answered as JSON."""

import asyncio
import json
import sys

import numpy as np

ROW = [[1.5, 2.5, 3.5]]


def with_tritony(address, model, protocol):
    """It sends a `timeout` of 30 with every call, which is microseconds."""
    from tritony import InferenceClient

    client = InferenceClient.create_with(model, address, protocol=protocol, input_dims=2)
    return [client(np.array(ROW, np.float32)).tolist() for _ in range(5)]


def infer_input(module):
    tensor = module.InferInput("INPUT0", [1, 3], "FP32")
    tensor.set_data_from_numpy(np.array(ROW, np.float32), binary_data=False)
    return tensor


async def with_kserve_rest(address, model):
    import kserve

    client = kserve.InferenceRESTClient(kserve.RESTConfig(protocol="v2"))
    url = f"http://{address}"
    health = [await client.is_server_live(url), await client.is_server_ready(url), await client.is_model_ready(url, model)]
    request = kserve.InferRequest(model_name=model, infer_inputs=[infer_input(kserve)])
    answer = await client.infer(url, request, model_name=model)
    return [health, answer.outputs[0].as_numpy().tolist()]


async def with_kserve_grpc(address, model):
    import kserve

    client = kserve.InferenceGRPCClient(address)
    health = [await client.is_server_live(), await client.is_server_ready(), await client.is_model_ready(model)]
    request = kserve.InferRequest(model_name=model, infer_inputs=[infer_input(kserve)])
    answer = await client.infer(request)
    return [health, answer.outputs[0].as_numpy().tolist()]


if __name__ == "__main__":
    name, address, model = sys.argv[1:]
    print(json.dumps({
        "tritony-http": lambda: with_tritony(address, model, "http"),
        "tritony-grpc": lambda: with_tritony(address, model, "grpc"),
        "kserve-rest": lambda: asyncio.run(with_kserve_rest(address, model)),
        "kserve-grpc": lambda: asyncio.run(with_kserve_grpc(address, model)),
    }[name]()))
