"""Models for the proof: networks of the usual shapes with random weights, as ONNX files and as repositories."""

import numpy as np
from onnx import TensorProto, helper, numpy_helper, save


class Network:
    """A chain of nodes; each method appends one and returns the name of what comes out."""

    def __init__(self, seed):
        self.random = np.random.default_rng(seed)
        self.nodes, self.weights = [], []

    def add(self, operator, *inputs, **attributes):
        name = f"t{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, list(inputs), [name], **attributes))
        return name

    def weight(self, array):
        name = f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(array.astype(np.float32), name))
        return name

    def conv(self, x, channels_in, channels, size=1, stride=1, gain=1.0):
        scale = gain * np.sqrt(2 / (channels_in * size * size))
        kernel = self.random.standard_normal((channels, channels_in, size, size)) * scale
        pad = size // 2
        weights = self.weight(kernel), self.weight(np.zeros(channels))
        return self.add("Conv", x, *weights, kernel_shape=[size] * 2, strides=[stride] * 2, pads=[pad] * 4)

    def relu(self, x):
        return self.add("Relu", x)

    def dense(self, x, width_in, width):
        matrix = self.random.standard_normal((width_in, width)) / np.sqrt(width_in)
        return self.add("Gemm", x, self.weight(matrix), self.weight(np.zeros(width)))

    def save(self, path, out, image, classes):
        """Bytes of an image in, a score per class out. The batch is open."""
        self.nodes.append(helper.make_node("Identity", [out], ["SCORES"]))
        inputs = [helper.make_tensor_value_info("IMAGE", TensorProto.UINT8, ["n", *image])]
        outputs = [helper.make_tensor_value_info("SCORES", TensorProto.FLOAT, ["n", classes])]
        graph = helper.make_graph(self.nodes, "network", inputs, outputs, self.weights)
        opset = [helper.make_opsetid("", 17)]
        path.parent.mkdir(parents=True, exist_ok=True)
        save(helper.make_model(graph, opset_imports=opset, ir_version=8), path)

    def pixels(self):
        """The image as numbers around zero."""
        image = self.add("Cast", "IMAGE", to=TensorProto.FLOAT)
        image = self.add("Div", image, self.weight(np.array(128.0)))
        return self.add("Sub", image, self.weight(np.array(1.0)))


def small(path, image=(3, 32, 32)):
    net = Network(1)
    x = net.pixels()
    for channels_in, channels in [(3, 32), (32, 64)]:
        x = net.relu(net.conv(x, channels_in, channels, size=3, stride=2))
    x = net.add("Flatten", net.add("GlobalAveragePool", x))
    net.save(path, net.dense(x, 64, 10), image, 10)


def resnet50(path, image=(3, 224, 224)):
    """He et al. 2015, the 50-layer network, its normalisation folded into the convolutions as exporters do."""
    net = Network(2)
    x = net.relu(net.conv(net.pixels(), 3, 64, size=7, stride=2))
    x = net.add("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    channels_in = 64
    for stage, blocks in enumerate([3, 4, 6, 3]):
        width = 64 << stage
        for block in range(blocks):
            stride = 2 if block == 0 and stage > 0 else 1
            inner = net.relu(net.conv(x, channels_in, width))
            inner = net.relu(net.conv(inner, width, width, size=3, stride=stride))
            inner = net.conv(inner, width, 4 * width, gain=0.3)
            if block == 0:
                x = net.conv(x, channels_in, 4 * width, stride=stride)
            x = net.relu(net.add("Add", x, inner))
            channels_in = 4 * width
    x = net.add("Flatten", net.add("GlobalAveragePool", x))
    net.save(path, net.dense(x, channels_in, 1000), image, 1000)


EXACT = """optimization { execution_accelerators { gpu_execution_accelerator {
  name: "cuda" parameters { key: "use_tf32" value: "0" } } } }
"""


def config(folder, group, more="", max_batch_size=32):
    text = f'platform: "onnxruntime_onnx"\nmax_batch_size: {max_batch_size}\ninstance_group {{ {group} }}\n{more}'
    (folder / "config.pbtxt").write_text(text)
