"""The model repository of the load tool's tests: the same names, shapes and behaviour on both servers."""

from repositories import REPEAT_CONFIG, add_sub_config, copy_example, identity_config, tensor, write_model

# Checks what a load tool must keep to when it drives sequences, and fails the request that breaks it: ids are
# not 0, a sequence begins with start, nothing follows end, nothing starts twice.
SEQUENCE_MODEL = """\
import json

import numpy as np
import triton_python_backend_utils as pb


class TritonPythonModel:
    def initialize(self, args):
        self.open = {}
        told = json.loads(args["model_config"])["parameters"]["log"]["string_value"]
        self.log = open(told, "a", buffering=1)

    def execute(self, requests):
        return [self.step(request) for request in requests]

    def step(self, request):
        def read(name):
            return int(pb.get_input_tensor_by_name(request, name).as_numpy().reshape(-1)[0])

        start, end, ready, which, value = (read(name) for name in ("START", "END", "READY", "CORRID", "INPUT"))
        if not ready:
            return pb.InferenceResponse([pb.Tensor("OUTPUT", np.zeros((1, 1), np.int32))])
        self.log.write(f"{which} {start} {end} {value}\\n")
        if which == 0 or (not start and which not in self.open):
            return pb.InferenceResponse(error=pb.TritonError(f"sequence {which} was not started"))
        self.open[which] = 0 if start else self.open[which]
        self.open[which] += 1
        steps = self.open[which]
        if end:
            del self.open[which]
        return pb.InferenceResponse([pb.Tensor("OUTPUT", np.array([[steps]], np.int32))])
"""

BLS_MODEL = """\
import triton_python_backend_utils as pb


class TritonPythonModel:
    def execute(self, requests):
        answers = []
        for request in requests:
            call = pb.InferenceRequest(
                model_name="simple", inputs=request.inputs(), requested_output_names=["OUTPUT0", "OUTPUT1"])
            answers.append(pb.InferenceResponse(call.exec().output_tensors()))
        return answers
"""

# Stops now and then, as a server that collects garbage or loads a model does.
STALL_EVERY, STALL_SECONDS = 200, 0.3
STALLING_MODEL = f"""\
import time

import triton_python_backend_utils as pb


class TritonPythonModel:
    def initialize(self, args):
        self.seen = 0

    def execute(self, requests):
        self.seen += len(requests)
        if self.seen % {STALL_EVERY} == 0:
            time.sleep({STALL_SECONDS})
        return [
            pb.InferenceResponse([pb.Tensor("OUTPUT0", pb.get_input_tensor_by_name(request, "INPUT0").as_numpy())])
            for request in requests
        ]
"""

# Holds its requests while there is a file `closed` in its folder, and says so by a file `holding`.
GATED_MODEL = """\
import pathlib
import time

import triton_python_backend_utils as pb


class TritonPythonModel:
    def initialize(self, args):
        self.folder = pathlib.Path(__file__).parent

    def execute(self, requests):
        while (self.folder / "closed").exists():
            (self.folder / "holding").touch()
            time.sleep(0.01)
        return [
            pb.InferenceResponse([pb.Tensor("OUTPUT0", pb.get_input_tensor_by_name(request, "INPUT0").as_numpy())])
            for request in requests
        ]
"""

# The Flair pipeline of the seed documents: names, types and shapes are theirs, the work is not.
FLAIR_TOKENIZATION = """\
import numpy as np
import triton_python_backend_utils as pb


class TritonPythonModel:
    def execute(self, requests):
        answers = []
        for request in requests:
            size = pb.get_input_tensor_by_name(request, "sentence_bytes").as_numpy().size
            words = max(1, size // 6)
            answers.append(pb.InferenceResponse([
                pb.Tensor("sorted_lengths", np.array([words], np.int64)),
                pb.Tensor("sentence_tensor", np.zeros((1, words, 2148), np.float32)),
            ]))
        return answers
"""
FLAIR_TAGGER = """\
import numpy as np
import triton_python_backend_utils as pb


class TritonPythonModel:
    def execute(self, requests):
        answers = []
        for request in requests:
            lengths = pb.get_input_tensor_by_name(request, "INPUT__0").as_numpy()
            words = pb.get_input_tensor_by_name(request, "INPUT__1").as_numpy().shape[1]
            answers.append(pb.InferenceResponse([
                pb.Tensor("OUTPUT__0", np.zeros((1, words, 20, 20), np.float32)), pb.Tensor("OUTPUT__1", lengths),
            ]))
        return answers
"""
FLAIR_DECODER = """\
import triton_python_backend_utils as pb


class TritonPythonModel:
    def execute(self, requests):
        sentences = [pb.get_input_tensor_by_name(request, "sentence_bytes").as_numpy() for request in requests]
        return [pb.InferenceResponse([pb.Tensor("tagged_sentences", sentence)]) for sentence in sentences]
"""
# Its later form: text in, text out.
FLAIR_STRINGS = """\
import numpy as np
import triton_python_backend_utils as pb


class TritonPythonModel:
    def execute(self, requests):
        answers = []
        for request in requests:
            texts = pb.get_input_tensor_by_name(request, "INPUT_0").as_numpy()
            answers.append(pb.InferenceResponse([pb.Tensor("OUTPUT_0", texts.astype(np.object_))]))
        return answers
"""
# The shapes of the captioning model of the seeds.
BLIP_MODEL = """\
import numpy as np
import triton_python_backend_utils as pb


class TritonPythonModel:
    def execute(self, requests):
        answers = []
        for request in requests:
            ids = pb.get_input_tensor_by_name(request, "input_ids").as_numpy()
            answers.append(pb.InferenceResponse([pb.Tensor("logits", ids.astype(np.float32))]))
        return answers
"""


def steps(*models):
    """An `ensemble_scheduling` block; each model is (name, {its input: ours}, {its output: ours})."""
    text = ""
    for name, inputs, outputs in models:
        maps = "".join(f' input_map {{ key: "{k}" value: "{v}" }}' for k, v in inputs.items())
        maps += "".join(f' output_map {{ key: "{k}" value: "{v}" }}' for k, v in outputs.items())
        text += f' {{ model_name: "{name}" model_version: -1{maps} }},'
    return f"ensemble_scheduling {{ step [{text.rstrip(',')} ] }}\n"


PAIR_IN = {"INPUT0": "INPUT0", "INPUT1": "INPUT1"}
PAIR_OUT = {"OUTPUT0": "OUTPUT0", "OUTPUT1": "OUTPUT1"}

SEQUENCE_TENSORS = tensor("input", "INPUT", "TYPE_INT32", "1") + tensor("output", "OUTPUT", "TYPE_INT32", "1")
SEQUENCE_CONTROL = """\
  control_input [
    { name: "START" control [ { kind: CONTROL_SEQUENCE_START int32_false_true: [ 0, 1 ] } ] },
    { name: "END" control [ { kind: CONTROL_SEQUENCE_END int32_false_true: [ 0, 1 ] } ] },
    { name: "READY" control [ { kind: CONTROL_SEQUENCE_READY int32_false_true: [ 0, 1 ] } ] },
    { name: "CORRID" control [ { kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_UINT64 } ] }
  ]
"""


def sequence_config(strategy, settings, log):
    batching = f"sequence_batching {{\n  max_sequence_idle_microseconds: 5000000\n  {strategy} {{ {settings} }}\n{SEQUENCE_CONTROL}}}\n"
    log = f'parameters {{ key: "log" value {{ string_value: "{log}" }} }}\n'
    return f"max_batch_size: 8\n{SEQUENCE_TENSORS}{batching}{log}"


def sequence_log(repository, name):
    """Where a sequence model of this repository writes `id start end value` for every step."""
    return repository / name / "steps.log"


def python_model(repository, name, config, source):
    """The same Python model for both servers."""
    folder = write_model(repository, name, "python", "python", config)
    (folder / "1/model.py").write_text(source)


def add_pipelines(repository):
    """Ensembles: `inner` has two steps, `outer` calls `inner` and one model more."""
    doubled = (PAIR_IN, {"OUTPUT0": "sum", "OUTPUT1": "difference"})
    last = ({"INPUT0": "sum", "INPUT1": "difference"}, PAIR_OUT)
    config = add_sub_config(more="")
    write_model(repository, "inner", "any", "ensemble", config + steps(("simple", *doubled), ("plain", *last)))
    write_model(repository, "outer", "any", "ensemble", config + steps(("inner", *doubled), ("simple", *last)))


def add_flair(repository):
    name = "flair-ner-english-fast"
    ints = "TYPE_INT64"
    lengths, numbers = tensor("output", "sorted_lengths", ints, "-1"), tensor("output", "sentence_tensor", "TYPE_FP32", "-1, -1, 2148")
    sentence = tensor("input", "sentence_bytes", ints, "-1")
    python_model(repository, f"{name}-tokenization", sentence + lengths + numbers, FLAIR_TOKENIZATION)
    tagger = tensor("input", "INPUT__0", ints, "-1") + tensor("input", "INPUT__1", "TYPE_FP32", "-1, -1, 2148")
    tagger += tensor("output", "OUTPUT__0", "TYPE_FP32", "-1, -1, 20, 20") + tensor("output", "OUTPUT__1", ints, "-1")
    python_model(repository, name, tagger, FLAIR_TAGGER)
    tagged = tensor("output", "tagged_sentences", ints, "-1")
    decoder = sentence + tensor("input", "features", "TYPE_FP32", "-1, -1, 20, 20") + tensor("input", "sorted_lengths", ints, "-1")
    python_model(repository, f"{name}-viterbi-decoder", decoder + tagged, FLAIR_DECODER)
    pipeline = steps(
        (f"{name}-tokenization", {"sentence_bytes": "sentence_bytes"}, {"sorted_lengths": "l", "sentence_tensor": "t"}),
        (name, {"INPUT__0": "l", "INPUT__1": "t"}, {"OUTPUT__0": "f", "OUTPUT__1": "m"}),
        (f"{name}-viterbi-decoder", {"sentence_bytes": "sentence_bytes", "features": "f", "sorted_lengths": "m"},
         {"tagged_sentences": "tagged_sentences"}),
    )
    write_model(repository, f"{name}-ensemble", "any", "ensemble", sentence + tagged + pipeline)
    strings = tensor("input", "INPUT_0", "TYPE_STRING", "-1") + tensor("output", "OUTPUT_0", "TYPE_STRING", "-1")
    batching = "dynamic_batching { preferred_batch_size: [ 1, 16, 32 ] max_queue_delay_microseconds: 2000 }\n"
    python_model(repository, "ner-english-fast", "max_batch_size: 32\n" + strings + batching, FLAIR_STRINGS)


def add_blip(repository, *names):
    tensors = tensor("input", "pixel_values", "TYPE_FP32", "3, 384, 384")
    tensors += tensor("input", "input_ids", "TYPE_INT64", "-1") + tensor("input", "attention_mask", "TYPE_INT64", "-1")
    tensors += tensor("output", "logits", "TYPE_FP32", "-1")
    for name in names:
        python_model(repository, name, "max_batch_size: 4\n" + tensors, BLIP_MODEL)


def add_sequences(repository):
    for strategy, settings in (("direct", ""), ("oldest", "max_candidate_sequences: 32")):
        name = f"sequence_{strategy}"
        config = sequence_config(strategy, settings, sequence_log(repository, name))
        python_model(repository, name, config, SEQUENCE_MODEL)


def add_pair(repository, name, target, more):
    """A model that adds and subtracts: ONNX here, Python on the real server, which has no ONNX backend."""
    if target == "triton":
        write_model(repository, name, target, "add_sub", add_sub_config(more=more))
    else:
        config = f'name: "{name}"\nbackend: "onnxruntime"\n' + add_sub_config(more=more)
        copy_example(repository, "simple", name=name, config=config)


def write_perf_models(repository, target):
    """Every model of the load tool's tests."""
    add_pair(repository, "simple", target, "dynamic_batching { }\n")
    add_pair(repository, "plain", target, "")
    add_pair(repository, "cached", target, "response_cache { enable: true }\n")
    add_pipelines(repository)
    write_model(repository, "repeat", target, "repeat", REPEAT_CONFIG)
    write_model(repository, "bytes", target, "identity", identity_config("TYPE_STRING", "1", 8))
    write_model(repository, "bytes_any", target, "identity", identity_config("TYPE_STRING", "-1"))
    write_model(repository, "dynamic", target, "identity", identity_config("TYPE_FP32", "-1", 8))
    write_model(repository, "floats", target, "identity", identity_config("TYPE_FP32", "4"))
    delay = 'parameters { key: "execute_delay_ms" value { string_value: "20" } }\n'
    write_model(repository, "slow", target, "identity", identity_config("TYPE_FP32", "4", more=delay))
    told = 'parameters { key: "fail" value { string_value: "execute" } }\n'
    write_model(repository, "failing", target, "failing", identity_config(more=told))
    python_model(repository, "bls", add_sub_config(more=""), BLS_MODEL)
    python_model(repository, "gated", identity_config("TYPE_FP32", "4"), GATED_MODEL)
    add_flair(repository)
    add_blip(repository, "base_model_cpu", "base_model_gpu", "base_model_multi_gpu", "trt_model")
    add_sequences(repository)
    if target != "triton":
        python_model(repository, "stalling", identity_config("TYPE_FP32", "4"), STALLING_MODEL)
    return repository


if __name__ == "__main__":
    import sys
    from pathlib import Path

    write_perf_models(Path(sys.argv[1]), sys.argv[2])
