"""Generate, generate_stream and, ours only, inference in JSON lines, read with curl and aiohttp: the same bytes from
our server and from the real Triton."""

import asyncio
import json
import re
import subprocess

import aiohttp
import pytest

import repositories
import tiers

LIMIT = 60
EVENTS = "text/event-stream; charset=utf-8"
LINES = "application/x-ndjson"
NOT_ONE = (
    '{"error":"generate expects model to produce exactly 1 response, use generate stream for model that generates '
    'various number of responses"}'
)


def write(path, target):
    repositories.write_model(path, "repeat", target, "repeat", repositories.REPEAT_CONFIG)
    repositories.write_model(path, "identity", target, repositories.PASSES_ON[target], repositories.identity_config())
    told = 'parameters { key: "fail" value { string_value: "execute" } }\n'
    repositories.write_model(path, "failing", target, "failing", repositories.identity_config() + told)


@pytest.fixture(scope="module", params=tiers.BOTH)
def server(request, module_stage):
    return module_stage.get(request.param, write)


@pytest.fixture
def ours(server):
    if server.target != "galatea":
        pytest.skip("beyond Triton")
    return server


def repeat(values, delays=None, **more):
    delays = [0] * len(values) if delays is None else delays
    return {"IN": list(values), "DELAY": delays, "WAIT": 0, **more}


def tensors(values, **more):
    columns = {"IN": ("INT32", values), "DELAY": ("UINT32", [0] * len(values)), "WAIT": ("UINT32", [0])}
    inputs = [{"name": n, "datatype": t, "shape": [len(v)], "data": list(v)} for n, (t, v) in columns.items()]
    return {"inputs": inputs, **more}


def curl(server, path, body, *options):
    """The answer as it came: its head, without the line that only ours has, and its chunks or its body."""
    url = f"http://{server.http}/v2/models/{path}"
    command = ["curl", "-s", "-i", "--raw", "--no-buffer", "--max-time", str(LIMIT), *options, "-d", json.dumps(body), url]
    head, body = subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout.decode().split("\r\n\r\n", 1)
    head = re.sub(r"\r\nServer: galatea/[^\r]+", "", head)
    return (head, *(chunks(body) if "chunked" in head else [body]))


def chunks(body):
    """The last, empty one included. Sizes are hexadecimal in either case."""
    while body:
        size, rest = body.split("\r\n", 1)
        end = int(size, 16)
        assert rest[end : end + 2] == "\r\n"
        yield rest[:end]
        body = rest[end + 2 :]


def chunked(status, content_type, *chunks):
    head = f"HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\nTransfer-Encoding: chunked"
    return (head, *chunks, "")


def event(index, value):
    return f'data: {{"IDX":{index},"OUT":{value},"model_name":"repeat","model_version":"1"}}\n\n'


def test_every_response_is_a_chunk_with_an_event(server):
    answer = curl(server, "repeat/generate_stream", repeat([7, 8, 9]))
    assert answer == chunked("200 OK", EVENTS, event(0, 7), event(1, 8), event(2, 9))


def test_without_responses_no_event_is_sent(server):
    assert curl(server, "repeat/generate_stream", repeat([])) == chunked("200 OK", EVENTS)


def test_models_with_one_response_stream_one_event(server):
    answer = curl(server, "identity/generate_stream", {"INPUT0": [0.1, 2], "id": "q"})
    expected = 'data: {"OUTPUT0":[0.10000000149011612,2.0],"id":"q","model_name":"identity","model_version":"1"}\n\n'
    assert answer == chunked("200 OK", EVENTS, expected)


def test_generate_expects_exactly_one_response(server):
    one = '{"IDX":0,"OUT":5,"id":"x","model_name":"repeat","model_version":"1"}'
    assert curl(server, "repeat/generate", repeat([5], id="x")) == chunked("200 OK", "application/json", one)
    for values in ([], [5, 6]):
        assert curl(server, "repeat/generate", repeat(values)) == chunked("200 OK", "application/json", NOT_ONE)


def test_a_first_response_with_an_error_decides_the_status(server):
    text = '{"error":"model \'failing\' was told to fail"}'
    answer = curl(server, "failing/generate", {"INPUT0": 1})
    assert answer == chunked("400 Bad Request", "application/json", text)
    answer = curl(server, "failing/generate_stream", {"INPUT0": 1})
    assert answer == chunked("400 Bad Request", EVENTS, f"data: {text}\n\n")


def test_a_request_refused_before_inference_gets_a_plain_error(server):
    text = "The schema can not convert input 'WAIT' to tensor with proper shape"
    body = json.dumps({"error": text}, separators=(",", ":"))
    head = f"HTTP/1.1 400 Bad Request\r\nContent-Type: application/json\r\nContent-Length: {len(body)}"
    for path in ("repeat/generate", "repeat/generate_stream"):
        assert curl(server, path, {**repeat([1]), "WAIT": [1, 2]}) == (head, body)


async def arrivals(server, path, body, headers=None, most=None):
    """The non-empty lines of an answer; where `most` is given the connection is closed after so many."""
    timeout = aiohttp.ClientTimeout(total=LIMIT)
    found = []
    async with aiohttp.ClientSession(timeout=timeout) as session:
        async with session.post(f"http://{server.http}/v2/models/{path}", json=body, headers=headers) as reply:
            assert reply.status == 200
            async for line in reply.content:
                found += [line] if line.strip() else []
                if len(found) == most:
                    reply.close()
                    break
    return found


def test_events_are_sent_as_soon_as_they_exist(server):
    """The third event would come a minute later."""
    found = asyncio.run(arrivals(server, "repeat/generate_stream", repeat([1, 2, 3], [0, 0, 60_000]), most=2))
    assert [line.decode() + "\n" for line in found] == [event(0, 1), event(1, 2)]


def test_many_concurrent_streams_are_complete(server):
    async def all_of_them():
        return await asyncio.gather(
            *(arrivals(server, "repeat/generate_stream", repeat(range(50), id=str(n))) for n in range(40))
        )

    for n, found in enumerate(asyncio.run(all_of_them())):
        documents = [json.loads(line.removeprefix(b"data: ")) for line in found]
        assert [d["OUT"] for d in documents] == list(range(50))
        assert {d["id"] for d in documents} == {str(n)}


def test_decoupled_models_need_the_json_lines_media_type(server):
    head, body = curl(server, "repeat/infer", tensors([1]))
    assert head.startswith("HTTP/1.1 501 ")
    assert body == '{"error":"HTTP end point doesn\'t support models with decoupled transaction policy"}'


def line(index, value):
    outputs = (
        f'{{"name":"OUT","datatype":"INT32","shape":[1],"data":[{value}]}},'
        f'{{"name":"IDX","datatype":"UINT32","shape":[1],"data":[{index}]}}'
    )
    parameters = '"parameters":{"triton_final_response":false}'
    return f'{{"model_name":"repeat","model_version":"1",{parameters},"outputs":[{outputs}]}}\n'


def test_every_response_is_a_line(ours):
    answer = curl(ours, "repeat/infer", tensors([7, 8]), "-H", f"Accept: {LINES}")
    assert answer == chunked("200 OK", LINES, line(0, 7), line(1, 8))


def test_an_empty_final_response_is_a_line_on_request(ours):
    body = tensors([7], parameters={"triton_enable_empty_final_response": True})
    found = asyncio.run(arrivals(ours, "repeat/infer", body, {"Accept": LINES}))
    end = {
        "model_name": "repeat", "model_version": "1", "parameters": {"triton_final_response": True}, "outputs": [],
    }
    assert [json.loads(text) for text in found] == [json.loads(line(0, 7)), end]
