"""Makes a model repository of AOTInductor packages: `python make_pt2.py FOLDER`, with a PyTorch 2.6 or newer and g++.

FOLDER gets a folder per model, and `expected/MODEL.npz` with inputs under the names of the configuration and the
outputs that the model itself gives for them in PyTorch, under theirs.
"""

import sys
import time
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.export import Dim


class Dense(nn.Module):
    """Batches of any size."""

    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 10))

    def forward(self, x):
        return self.layers(x)


class Named(nn.Module):
    """Arguments and results with structure: names by the call spec."""

    def forward(self, x, pair, *, mask):
        total = x + pair["a"] * pair["b"]
        return {"total": total, "parts": (total * mask, total.sum(dim=1))}


class Views(nn.Module):
    """Results that lie inside an input and inside a weight, and one that is not in rows."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.arange(6.0).reshape(2, 3))

    def forward(self, x):
        return x[1:], self.weight, (x * 2).t(), x.double(), (x > 0)


class Counter(nn.Module):
    """Keeps a state and writes to its input."""

    def __init__(self):
        super().__init__()
        self.register_buffer("seen", torch.zeros(3))

    def forward(self, x):
        self.seen.add_(x)
        x.mul_(0)
        return self.seen.clone() + x


class Pictures(nn.Module):
    """Convolutions with batch normalisation, so buffers that nothing writes to."""

    def __init__(self):
        super().__init__()
        layers, width = [], 3
        for wider in (32, 64, 64, 128):
            layers += [nn.Conv2d(width, wider, 3, padding=1), nn.BatchNorm2d(wider), nn.ReLU(), nn.MaxPool2d(2)]
            width = wider
        self.layers = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, 10))

    def forward(self, x):
        return self.layers(x)


@torch.library.custom_op("galatea_test::twice", mutates_args=())
def twice(x: torch.Tensor) -> torch.Tensor:
    return x * 2


@twice.register_fake
def _(x):
    return torch.empty_like(x)


class Foreign(nn.Module):
    """Calls an operator that only this script knows."""

    def forward(self, x):
        return twice(x)


NAMES = {"torch.float32": "FP32", "torch.float64": "FP64", "torch.int64": "INT64", "torch.bool": "BOOL"}


def port(kind, name, tensor, has_batching):
    dims = list(tensor.shape)[has_batching:] or [1]
    reshape = "" if tensor.dim() > has_batching else " reshape { shape: [] }"
    return f'{kind} {{ name: "{name}" data_type: TYPE_{NAMES[str(tensor.dtype)]} dims: {dims}{reshape} }}\n'


def package(root, name, module, args, kwargs=None, inputs=(), outputs=(), dynamic=None, more=""):
    """`inputs` and `outputs`: names and tensors for the configuration, outputs' tensors as PyTorch computes them."""
    started = time.time()
    path = root / name / "1/model.pt2"
    path.parent.mkdir(parents=True)
    program = torch.export.export(module, args, kwargs or {}, dynamic_shapes=dynamic)
    torch._inductor.aoti_compile_and_package(program, package_path=str(path))
    batching = "max_batch_size: 64\n" if dynamic else ""
    config = f'platform: "torch_aoti"\n{batching}{more}'
    config += "".join(port("input", n, t, bool(dynamic)) for n, t in inputs)
    config += "".join(port("output", n, t, bool(dynamic)) for n, t in outputs)
    (root / name / "config.pbtxt").write_text(config)
    (root / "expected").mkdir(exist_ok=True)
    arrays = {n: t.detach().numpy() for n, t in [*inputs, *outputs]}
    np.savez(root / f"expected/{name}.npz", **arrays)
    print(f"{name}: {path.stat().st_size} bytes, {time.time() - started:.1f} s", flush=True)


def main(root):
    torch.manual_seed(0)
    batch = {"x": {0: Dim("batch", min=1, max=64)}}
    with torch.no_grad():
        x = torch.rand(6, 16)
        dense = Dense().eval()
        package(root, "dense", dense, (x,), inputs=[("INPUT__0", x)], outputs=[("OUTPUT__0", dense(x))],
                dynamic=batch, more="instance_group { count: 2 kind: KIND_CPU }\n"
                "dynamic_batching { max_queue_delay_microseconds: 1000 }\n")
        images = torch.rand(4, 3, 64, 64)
        pictures = Pictures().eval()
        package(root, "pictures", pictures, (images,), inputs=[("ARGS[0]", images)],
                outputs=[("RESULT", pictures(images))], dynamic=batch)

        a, b, mask = torch.rand(2, 3), torch.rand(2, 3), torch.rand(2, 3)
        result = Named()(x[:2, :3], {"a": a, "b": b}, mask=mask)
        package(root, "named", Named(), (x[:2, :3].clone(), {"a": a, "b": b}), {"mask": mask},
                inputs=[("KWARGS[mask]", mask), ("ARGS[0]", x[:2, :3]), ("ARGS[1][b]", b), ("INPUT__1", a)],
                outputs=[("RESULT[parts][1]", result["parts"][1]), ("RESULT[total]", result["total"]),
                         ("OUTPUT__1", result["parts"][0])])

        y = torch.randn(3, 2)
        views = Views().eval()
        package(root, "views", views, (y,), inputs=[("INPUT__0", y)],
                outputs=[(f"RESULT[{i}]", t.contiguous()) for i, t in enumerate(views(y))])

        ones = torch.ones(3)
        package(root, "counter", Counter().eval(), (ones,), inputs=[("ARGS[0]", torch.ones(3))],
                outputs=[("RESULT", torch.ones(3))], more="instance_group { count: 2 kind: KIND_CPU }\n")
        package(root, "foreign", Foreign(), (ones,), inputs=[("ARGS[0]", ones)], outputs=[("RESULT", ones * 2)])


if __name__ == "__main__":
    main(Path(sys.argv[1]))
