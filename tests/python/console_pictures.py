"""Takes the picture of the console that the README shows, docs/images/console.png: a server with a few models under load.

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
import repositories
import servers

PICTURE = Path(__file__).resolve().parents[2] / "docs/images/console.png"
MOST_BYTES = 150_000
SIZE = (1200, 820)
DELAY = 'parameters {{ key: "execute_delay_ms" value {{ string_value: "{}" }} }}\n'
QUEUE = "dynamic_batching {{ max_queue_delay_microseconds: 4000 }}\ninstance_group [ {{ count: {} kind: KIND_CPU }} ]\n"
# Name, milliseconds of an execution, instances, clients.
MODELS = [("embed_text", 4, 2, 5), ("detect_objects", 18, 1, 3), ("rank_products", 7, 1, 2), ("transcribe_audio", 35, 1, 1)]


def write_models(path):
    for name, delay, count, _ in MODELS:
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


def take(picture, seconds, page_of="#/"):
    with tempfile.TemporaryDirectory() as folder:
        write_models(Path(folder))
        flags = ("--model-control-mode=explicit", "--load-model=*", "--exit-on-error=false")
        with servers.galatea(folder, *flags) as server, browser.open_browser(*SIZE) as page, load(server):
            page.emulate("light", "reduce")
            page.goto(f"http://{server.http}/{page_of}")
            page.wait_for("table.models")
            # What the charts show is this long.
            page.tab.wait_for_timeout(seconds * 1000)
            picture.parent.mkdir(parents=True, exist_ok=True)
            page.screenshot(picture)
    size = picture.stat().st_size
    assert size < MOST_BYTES, f"{picture} has {size} bytes"
    print(f"{picture}: {size} bytes")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--picture", type=Path, default=PICTURE)
    parser.add_argument("--seconds", type=int, default=60, help="how long the charts are")
    given = parser.parse_args()
    take(given.picture, given.seconds)
