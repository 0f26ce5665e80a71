"""A thousand small ONNX models: how long they take to load, on how much of the machine, and the memory they keep.

    cargo xtask bench many-models

The default, a session with helper threads and one without for each model, beside one thread for each model, which has no
helpers that could look for work while others load.
"""

import statistics
import tempfile
import time

import servers
from repositories import EXAMPLES, copy_example

MODELS = 1000
ONE_THREAD = "--backend-config=onnxruntime,intra_op_thread_count=1"
LAYOUTS = {"default": (), "one thread each": (ONE_THREAD,)}
GOAL = "<= 3 x"


def loaded(folder, flags):
    begin = time.monotonic()
    with servers.galatea(folder, *flags) as server:
        return {"seconds": time.monotonic() - begin, "CPU s": server.cpu_seconds(), "MB": server.rss_mb()}


def compared(args):
    runs = {layout: [] for layout in LAYOUTS}
    config = (EXAMPLES / "simple/config.pbtxt").read_text()
    with tempfile.TemporaryDirectory() as folder:
        for number in range(MODELS):
            name = f"model{number}"
            copy_example(folder, "simple", config.replace('"simple"', f'"{name}"'), name)
        for _ in range(args.rounds):
            for layout, flags in LAYOUTS.items():
                runs[layout].append(loaded(folder, flags))
    rows = []
    for layout, done in runs.items():
        median = {key: statistics.median(run[key] for run in done) for key in done[0]}
        pairs = zip(done, runs["one thread each"])
        ratio = statistics.median(run["CPU s"] / base["CPU s"] for run, base in pairs)
        other = f"{median['seconds']:.1f} s, CPU {median['CPU s']:.1f} s ({ratio:.2f} x), {median['MB']:.0f} MB"
        rows.append({"what": f"{MODELS:,} ONNX models to ready, {layout}", "server": "galatea", "other": other,
                     "goal": GOAL if layout == "default" else None})
    return rows, [{"many models": runs}]
