"""How long batches wait: delays that are given, and the one that the server learns, on a real model."""

import subprocess
import tempfile
from pathlib import Path

import measure
import models
import servers
from engines import MINILM

MODEL = "minilm_int8"
MICROSECONDS = (0, 500, 1000, 2000, 5000, 10000)
CALLERS = (16, 8, 4, 1)
AUTO = "auto"


def config(delay):
    """The example's tensors; two instances, as there are by default."""
    text = (models.EXAMPLES / MODEL / "config.pbtxt").read_text()
    tensors = text[text.index("input ["):text.index("instance_group")]
    batching = "dynamic_batching { }\nparameters { key: \"batch_delay\" value { string_value: \"auto\" } }\n"
    if delay != AUTO:
        batching = f"dynamic_batching {{ max_queue_delay_microseconds: {delay} }}\n"
    return f'platform: "onnxruntime_onnx"\nmax_batch_size: 8\n{tensors}instance_group [ {{ kind: KIND_CPU }} ]\n{batching}'


def fill(root):
    for delay in (*MICROSECONDS, AUTO):
        folder = root / f"delay_{delay}"
        (folder / "1").mkdir(parents=True)
        (folder / "1/model.onnx").symlink_to(MINILM)
        (folder / "config.pbtxt").write_text(config(delay))


def own_perf(server, delay, callers, seconds, data):
    """A run of `galatea perf`, which takes less of the machine than other load tools."""
    model = f"delay_{delay}"

    def load():
        command = [servers.galatea_binary(), "perf", "-m", model, "-u", server.grpc, "-i", "grpc", "--concurrency-range", callers,
                   "-p", int(seconds * 1000), "-s", "999", "-r", "3", "--input-data", data]
        run = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=600)
        assert run.returncode == 0, run.stdout + run.stderr
        return run.stdout

    report, cpu = measure.cpu_of(server, model, load)
    figures = {
        "infer/s": measure.number(r"Throughput: ([\d.]+) infer/sec", report),
        "p50 us": measure.number(r"p50 latency: (\d+) usec", report),
        "p99 us": measure.number(r"p99 latency: (\d+) usec", report),
        "CPU us/req": cpu,
    }
    return figures


def swept(args):
    rows, raw = [], []
    with tempfile.TemporaryDirectory() as folder:
        fill(Path(folder))
        data = models.input_file(tempfile.mkdtemp(dir=folder, prefix="."), MODEL)
        with servers.galatea(folder) as server:
            for callers in CALLERS:
                cases = {delay: lambda delay=delay: own_perf(server, delay, callers, args.seconds, data) for delay in (*MICROSECONDS, AUTO)}
                medians, runs = measure.interleaved(args.rounds, cases)
                rows += rows_of(callers, medians)
                raw.append({"what": f"delay, {callers} callers", "runs": {str(delay): run for delay, run in runs.items()}})
    return rows, raw


def rows_of(callers, medians):
    rows = []
    best = max(figures["infer/s"] for delay, figures in medians.items() if delay != AUTO)
    for delay, figures in medians.items():
        row = {"what": f"{MODEL}, {callers} callers", "server": f"delay {delay}" + ("" if delay == AUTO else " us"), **figures}
        if delay == AUTO:
            row["other"] = f"{figures['infer/s'] / best:.2f} of the best delay"
            row["goal"] = ">= 1" if callers > 1 else "as without a delay"
        rows.append(row)
    return rows
