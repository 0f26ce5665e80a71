"""Takes the pictures of the console in docs/images: a server with a few models under load, one that fails, one that is lost, and traces.

Needs a built server and `cargo xtask setup`: target/peers/venv/bin/python tests/python/console_pictures.py
"""

import argparse
import contextlib
import random
import tempfile
import threading
import time
from pathlib import Path

import browser
import clients
import console_trace_models
import repositories
import servers

FOLDER = Path(__file__).resolve().parents[2] / "docs/images"
MOST_BYTES = 150_000
DESK, PHONE = (1200, 820), (390, 844)
# File, address, colours, size. The last one is of a server that has ended.
PICTURES = [
    ("console.png", "#/", "light", DESK),
    ("console-dark.png", "#/models/embed_text", "dark", DESK),
    ("console-phone.png", "#/", "light", PHONE),
    ("console-failing.png", "#/models/translate_text", "light", (1200, 1090)),
]
LOST = ("console-lost.png", "#/", "light", DESK)
FAILING = 'parameters { key: "fail" value { string_value: "execute" } }\n'
DELAY = 'parameters {{ key: "execute_delay_ms" value {{ string_value: "{}" }} }}\n'
QUEUE = "dynamic_batching {{ max_queue_delay_microseconds: 4000 }}\ninstance_group [ {{ count: {} kind: KIND_CPU }} ]\n"
# Name, milliseconds of an execution, instances, clients.
MODELS = [("translate_text", 0, 1, 1), ("embed_text", 4, 2, 5), ("detect_objects", 18, 1, 3), ("rank_products", 7, 1, 2), ("transcribe_audio", 35, 1, 1)]


TRACES = ("console-traces.png", "#/models/summarize/traces", "light", (1200, 1010))


def write_models(path):
    failing = repositories.identity_config(max_batch_size=8, more=FAILING)
    repositories.write_model(path, "translate_text", "galatea", "failing", failing)
    for name, delay, count, _ in MODELS[1:]:
        config = repositories.identity_config(max_batch_size=8, more=QUEUE.format(count) + DELAY.format(delay))
        repositories.write_model(path, name, "galatea", "identity", config)
    repositories.write_model(path, "classify_images", "galatea", "identity", "max_batch_size: 8\nmax_batch_sise: 8\n")


@contextlib.contextmanager
def load(server):
    """Clients that wait between requests, now less and now more."""
    is_over = threading.Event()

    def send(name):
        began = time.monotonic()
        while not is_over.wait(random.random() * 0.02 * (1.3 + ((time.monotonic() - began) // 9) % 3)):
            tensor = {"name": "INPUT0", "shape": [1, 2], "datatype": "FP32", "data": [1.0, 2.0]}
            clients.ask(server.http, "POST", f"/v2/models/{name}/infer", {"inputs": [tensor]})

    threads = [threading.Thread(target=send, args=[name]) for name, _, _, count in MODELS for _ in range(count)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        is_over.set()
        for thread in threads:
            thread.join()


def show(page, server, address, colours, size):
    page.emulate(colours, "reduce")
    page.resize(*size)
    page.goto("about:blank")
    page.goto(f"http://{server.http}/{address}")
    page.wait("document.querySelector('#live').dataset.kind === 'live' && document.querySelector('h1')")
    # A few points of the page's own, with their quantiles.
    page.tab.wait_for_timeout(6000)


def save(page, folder, name):
    picture = folder / name
    page.screenshot(picture)
    size = picture.stat().st_size
    assert size < MOST_BYTES, f"{picture} has {size} bytes"
    print(f"{picture.name}: {size} bytes")


def take(folder, seconds):
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as models:
        write_models(Path(models))
        flags = ("--model-control-mode=explicit", "--load-model=*", "--exit-on-error=false")
        with servers.galatea(models, *flags) as server, browser.open_browser(*DESK) as page:
            with load(server):
                # The history of the charts is this long.
                page.tab.wait_for_timeout(seconds * 1000)
                for name, *how in PICTURES:
                    show(page, server, *how)
                    save(page, folder, name)
                name, *how = LOST
                show(page, server, *how)
            server.stop()
            page.wait_for("#banner", "No connection")
            save(page, folder, name)


def take_traces(folder):
    """An ensemble of a Python model, which calls an ONNX model, and of an ONNX model; one of its traces is open."""
    folder.mkdir(parents=True, exist_ok=True)
    name, address, colours, size = TRACES
    with tempfile.TemporaryDirectory() as place, browser.open_browser(*size) as page:
        console_trace_models.write_pipeline(Path(place) / "models")
        with servers.galatea(Path(place) / "models", "--model-control-mode=explicit", "--load-model=*", f"--trace-config=triton,file={place}/traces.json") as server:
            # The first ones wait for memory and threads.
            for number in range(20):
                console_trace_models.infer(server, "summarize", id=str(number))
            setting = {"trace_level": ["TIMESTAMPS"], "trace_rate": "1", "trace_count": "20"}
            clients.ask(server.http, "POST", "/v2/models/summarize/trace/setting", setting)
            for number in range(6):
                console_trace_models.infer(server, "summarize", id=f"order-{4711 + number}")
            page.emulate(colours, "reduce")
            page.goto(f"http://{server.http}/{address}")
            page.click(".traces summary")
            page.wait_for(".inside table")
            save(page, folder, name)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=FOLDER)
    parser.add_argument("--seconds", type=int, default=90, help="how long the charts are")
    parser.add_argument("--traces", action="store_true", help="only the picture of traces")
    given = parser.parse_args()
    if not given.traces:
        take(given.folder, given.seconds)
    take_traces(given.folder)
