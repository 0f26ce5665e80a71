"""Models to try from the console's form: one for each kind of data that it knows."""

import ml_dtypes
import numpy as np

import repositories
from repositories import identity_config, tensor

INVERT = """\
import numpy as np
import triton_python_backend_utils as pb


class TritonPythonModel:
    def execute(self, requests):
        answers = []
        for request in requests:
            picture = pb.get_input_tensor_by_name(request, "picture").as_numpy()
            white = 255 if picture.dtype == np.uint8 else 1
            answers.append(pb.InferenceResponse([pb.Tensor("inverted", (white - picture).astype(picture.dtype))]))
        return answers
"""
OPTIONAL = """\
import numpy as np
import triton_python_backend_utils as pb


class TritonPythonModel:
    def execute(self, requests):
        answers = []
        for request in requests:
            more = pb.get_input_tensor_by_name(request, "more")
            said = f"{request.parameters()} {None if more is None else more.as_numpy().tolist()}"
            text = pb.get_input_tensor_by_name(request, "text").as_numpy()
            whole = np.array([said.encode(), *text.reshape(-1)], dtype=object)
            answers.append(pb.InferenceResponse([pb.Tensor("said", whole)]))
        return answers
"""
WORDS = """\
import numpy as np
import triton_python_backend_utils as pb


class TritonPythonModel:
    def execute(self, requests):
        for request in requests:
            sender = request.get_response_sender()
            text = pb.get_input_tensor_by_name(request, "prompt").as_numpy().reshape(-1)[0]
            for at in range(len(text)):
                sender.send(pb.InferenceResponse([pb.Tensor("piece", np.array([text[at:at + 1]], dtype=object))]))
            sender.send(flags=pb.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
"""
SOUND = """\
import numpy as np
import triton_python_backend_utils as pb


class TritonPythonModel:
    def execute(self, requests):
        answers = []
        for request in requests:
            samples = pb.get_input_tensor_by_name(request, "audio").as_numpy().reshape(-1)
            size = np.array([len(samples)], np.int32)
            answers.append(pb.InferenceResponse([pb.Tensor("samples", samples), pb.Tensor("size", size)]))
        return answers
"""

EXAMPLES = ("simple", "magika", "silero_vad", "minilm_int8")
IDENTITIES = {
    "half": "TYPE_FP16",
    "brain": "TYPE_BF16",
    "single": "TYPE_FP32",
    "long": "TYPE_INT64",
    "unsigned": "TYPE_UINT64",
    "texts": "TYPE_STRING",
    "bools": "TYPE_BOOL",
    "bytes": "TYPE_UINT8",
}

# The numpy type of each of them that holds numbers.
NUMPY = {
    "half": np.float16,
    "brain": ml_dtypes.bfloat16,
    "single": np.float32,
    "long": np.int64,
    "unsigned": np.uint64,
    "bools": np.bool_,
}


def python_model(path, name, text, config):
    repositories.write_model(path, name, "galatea", "python", config, {"1/model.py": text})


def write(path):
    """All of them below a folder."""
    for name in EXAMPLES:
        if (repositories.EXAMPLES / name / "1/model.onnx").exists():
            repositories.copy_example(path, name)
    for name, data_type in IDENTITIES.items():
        repositories.write_model(path, name, "galatea", "identity", identity_config(data_type))
    repositories.write_model(path, "fixed", "galatea", "identity", identity_config("TYPE_FP32", "2, 3", 4))
    slow = 'parameters { key: "execute_delay_ms" value { string_value: "20000" } }\n'
    repositories.write_model(path, "slow", "galatea", "identity", identity_config(more=slow))
    told = 'parameters { key: "fail" value { string_value: "execute" } }\n'
    repositories.write_model(path, "failing", "galatea", "failing", identity_config(more=told))
    repositories.write_model(path, "repeat", "galatea", "repeat", repositories.REPEAT_CONFIG)
    pictures = [("invert", "TYPE_UINT8", "3, -1, -1", "format: FORMAT_NCHW"), ("invert_float", "TYPE_FP32", "8, 8, 3", "format: FORMAT_NHWC")]
    for name, data_type, dims, more in pictures:
        ends = tensor("input", "picture", data_type, dims, more) + tensor("output", "inverted", data_type, dims)
        python_model(path, name, INVERT, f"max_batch_size: 4\n{ends}")
    ends = tensor("input", "text", "TYPE_STRING", "-1") + tensor("input", "more", "TYPE_INT32", "2", "optional: true")
    python_model(path, "optional", OPTIONAL, ends + tensor("output", "said", "TYPE_STRING", "-1"))
    decoupled = "model_transaction_policy { decoupled: true }\n"
    ends = tensor("input", "prompt", "TYPE_STRING", "1") + tensor("output", "piece", "TYPE_STRING", "1")
    python_model(path, "words", WORDS, ends + decoupled)
    ends = tensor("input", "audio", "TYPE_INT16", "-1") + tensor("output", "samples", "TYPE_INT16", "-1")
    python_model(path, "sound", SOUND, ends + tensor("output", "size", "TYPE_INT32", "1"))
    return path
