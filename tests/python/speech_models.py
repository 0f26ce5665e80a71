"""A real stateful model, silero's detector of speech, as streams of audio are asked about it: the server keeps its states."""

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper

import servers
import torchscript

DATA = servers.PEERS / "unpacked/model-wheels/silero_vad/data"
# The graph for one stream, which gets the 64 samples before the 512 new ones with each request.
SINGLE = DATA / "silero_vad_openvino_16k.onnx"
SAMPLES, CONTEXT = 512, 64

# The same around the weights of the TorchScript file, which else keeps its states within the module.
SCRIPT = """\
samples: Tensor,
    context: Tensor,
    state: Tensor) -> Tuple[Tensor, Tensor, Tensor]:
    x = torch.cat([context, samples], 1)
    model = self.model
    inner = model._model
    out, after, = (inner).forward(x, torch.transpose(state, 0, 1), )
    return (out, torch.slice(x, 1, -64), torch.contiguous(torch.transpose(after, 0, 1)))"""


def write_batched(path):
    """An ONNX graph for many streams in one batch: the new samples in, both states with the batch in front."""
    model = onnx.load(DATA / "silero_vad_16k_op15.onnx")
    graph = model.graph
    floats = TensorProto.FLOAT
    before = [
        helper.make_node("Concat", ["context", "samples"], ["input"], axis=1),
        helper.make_node("Transpose", ["state_in"], ["state"], perm=[1, 0, 2]),
        helper.make_node("Constant", [], ["sr"], value=onnx.numpy_helper.from_array(np.array(16000, np.int64))),
        helper.make_node("Constant", [], ["first"], value=onnx.numpy_helper.from_array(np.array([SAMPLES - CONTEXT], np.int64))),
        helper.make_node("Constant", [], ["end"], value=onnx.numpy_helper.from_array(np.array([SAMPLES], np.int64))),
        helper.make_node("Constant", [], ["row"], value=onnx.numpy_helper.from_array(np.array([1], np.int64))),
    ]
    after = [
        helper.make_node("Transpose", ["stateN"], ["state_out"], perm=[1, 0, 2]),
        helper.make_node("Slice", ["samples", "first", "end", "row"], ["context_out"]),
    ]
    nodes = [*before, *graph.node, *after]
    shapes = {"samples": [SAMPLES], "context": [CONTEXT], "state_in": [2, 128], "output": [1], "context_out": [CONTEXT], "state_out": [2, 128]}
    values = {name: helper.make_tensor_value_info(name, floats, ["batch", *dims]) for name, dims in shapes.items()}
    inputs = [values[name] for name in ("samples", "context", "state_in")]
    outputs = [values[name] for name in ("output", "context_out", "state_out")]
    made = helper.make_graph(nodes, "speech", inputs, outputs, list(graph.initializer))
    onnx.save(helper.make_model(made, opset_imports=model.opset_import, ir_version=model.ir_version), path)


def write_script(path):
    torchscript.wrap(path, DATA / "silero_vad.jit", "__torch__.vad.model.vad_annotator.VADRNNJITMerge", SCRIPT)


def speech(seed, chunks):
    """Something like speech: a voice that comes and goes, and noise; [chunks, 512]."""
    random = np.random.default_rng(seed)
    time = np.arange(SAMPLES * chunks) / 16000
    pitch = random.uniform(90, 220)
    voice = sum(np.sin(2 * np.pi * pitch * k * time + random.uniform(0, 6)) / k for k in range(1, 12))
    audio = 0.2 * voice * (np.sin(2 * np.pi * random.uniform(1, 4) * time) > 0) + 0.01 * random.standard_normal(time.size)
    return audio.astype(np.float32).reshape(chunks, SAMPLES)


def frames(chunks):
    """Each chunk with the 64 samples before it."""
    before = np.concatenate([np.zeros((1, CONTEXT), np.float32), chunks[:-1, -CONTEXT:]])
    return np.concatenate([before, chunks], axis=1)


def probabilities(chunks):
    """What ONNX Runtime gives in this process, step by step."""
    session = onnxruntime.InferenceSession(SINGLE, providers=["CPUExecutionProvider"])
    state, found = np.zeros((2, 1, 128), np.float32), []
    for frame in frames(chunks):
        output, state = session.run(None, {"input": frame[None], "state": state})
        found.append(float(output[0, 0]))
    return np.array(found, np.float32)
