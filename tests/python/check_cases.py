"""Mistakes in repositories, made on purpose: what is written, and what `galatea check` and a server say about it."""

from dataclasses import dataclass
from pathlib import Path

import onnx
from onnx import TensorProto, helper


@dataclass
class Link:
    target: str


FOLDER = None


@dataclass
class Case:
    """One model. `at`: the place that is told, from the repository on, with line and column where it has them."""

    name: str
    files: dict
    at: str
    text: str
    advice: str
    severity: str = "error"
    # What a server says in the place of `text`: its own code met the mistake.
    served: str = ""


def tensor(name, dims=("N", 3), type=TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, type, list(dims))


def onnx_model(inputs=None, outputs=None, initializers=(), node=None):
    inputs = inputs or [tensor("x")]
    outputs = outputs or [tensor("y")]
    node = node or helper.make_node("Identity", [inputs[0].name], [outputs[0].name])
    graph = helper.make_graph([node], "g", inputs, outputs, initializers)
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    return made.SerializeToString()


def with_external_weights():
    weights = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[3], data_location=TensorProto.EXTERNAL)
    weights.external_data.add(key="location", value="weights.bin")
    node = helper.make_node("Add", ["x", "w"], ["y"])
    return onnx_model(initializers=[weights], node=node)


GOOD = onnx_model()
LONGS = onnx_model([tensor("x", type=TensorProto.INT64)], [tensor("y", type=TensorProto.INT64)])
FIXED = onnx_model([tensor("x", (1, 3))], [tensor("y", (1, 3))])
LFS = b"version https://git-lfs.github.com/spec/v1\noid sha256:0123\nsize 123456\n"
PYTHON = b"class TritonPythonModel:\n    def execute(self, requests):\n        return []\n"
IDENTITY = b"""import triton_python_backend_utils as pb
class TritonPythonModel:
    def execute(self, requests):
        return [pb.InferenceResponse([pb.Tensor("y", r.inputs()[0].as_numpy())]) for r in requests]
"""
IO = 'input [ { name: "x" data_type: TYPE_FP32 dims: [ 3 ] } ]\noutput [ { name: "y" data_type: TYPE_FP32 dims: [ 3 ] } ]\n'
ONNX = 'backend: "onnxruntime"\n'
TORCH = 'backend: "pytorch"\n' + IO.replace('"x"', '"INPUT__0"').replace('"y"', '"OUTPUT__0"')


def config(text):
    return {"config.pbtxt": text, "1/model.onnx": GOOD}


NO_VERSION = "at least one version must be available under the version policy of model '{}'"
NO_CLASS = "the code has no class TritonPythonModel"
NO_ATTRIBUTE = "has no attribute 'TritonPythonModel'"
LAYOUT = [
    Case("no_version", {"config.pbtxt": ONNX}, "no_version", NO_VERSION, "make the folder 'no_version/1'"),
    Case("version_v1", {"v1/model.onnx": GOOD, "config.pbtxt": ONNX}, "version_v1/v1", NO_VERSION, "rename it to '1'"),
    Case("version_01", {"01/model.onnx": GOOD, "config.pbtxt": ONNX}, "version_01/01", NO_VERSION, "rename it to '1'"),
    Case("version_dot", {"2.0/model.onnx": GOOD, "config.pbtxt": ONNX}, "version_dot/2.0", NO_VERSION, "rename it to '2'"),
    Case("version_word", {"version_3/model.onnx": GOOD, "config.pbtxt": ONNX}, "version_word/version_3", NO_VERSION, "rename it to '3'"),
    Case("version_file", {"1": GOOD, "config.pbtxt": ONNX}, "version_file/1", NO_VERSION, "make a folder '1' and put the file into it as 'model.onnx'"),
    Case("version_link", {"1": Link("gone"), "config.pbtxt": ONNX}, "version_link/1", NO_VERSION, "the link leads to nothing"),
    Case("beside", {"model.onnx": GOOD, "config.pbtxt": ONNX}, "beside/model.onnx", NO_VERSION, "move it to 'beside/1/model.onnx'"),
    Case("beside_bare", {"model.onnx": GOOD}, "beside_bare/model.onnx", "Could not determine backend", "move it to 'beside_bare/1/model.onnx'"),
    Case("beside_empty", {"model.onnx": GOOD, "1": FOLDER, "config.pbtxt": ONNX}, "beside_empty/model.onnx", "failed to stat file", "move it to 'beside_empty/1/model.onnx'"),
    Case("ensemble_bare", {"config.pbtxt": 'platform: "ensemble"\n' + IO + 'ensemble_scheduling { step [ { model_name: "fine" model_version: -1 input_map { key: "x" value: "x" } output_map { key: "y" value: "y" } } ] }'},
         "ensemble_bare", NO_VERSION, "make the empty folder 'ensemble_bare/1'"),
    Case("empty_version", {"1": FOLDER, "config.pbtxt": ONNX}, "empty_version/1", "failed to stat file", "put the model's file into it as 'model.onnx'"),
    Case("other_name", {"1/iris.onnx": GOOD, "config.pbtxt": ONNX}, "other_name/1/iris.onnx", "failed to stat file",
         "rename it to 'model.onnx', or set default_model_filename: \"iris.onnx\" in config.pbtxt"),
    Case("other_name_bare", {"1/iris.onnx": GOOD}, "other_name_bare/1/iris.onnx", "Could not determine backend",
         "found 'iris.onnx' where 'model.onnx' is looked for; rename it to 'model.onnx', or set backend: \"onnxruntime\" and default_model_filename: \"iris.onnx\""),
    Case("other_case", {"1/Model.ONNX": GOOD, "config.pbtxt": ONNX}, "other_case/1/Model.ONNX", "failed to stat file", "rename it to 'model.onnx'"),
    Case("several", {"1/a.onnx": GOOD, "1/b.onnx": GOOD, "config.pbtxt": ONNX}, "several/1", "failed to stat file", "found 'a.onnx' and 'b.onnx'"),
    Case("other_backend", {"1/model.pt": b"PK\x03\x04", "config.pbtxt": ONNX}, "other_backend/1/model.pt", "failed to stat file", 'write backend: "pytorch"'),
    Case("wrong_given_name", {"1/model.onnx": GOOD, "config.pbtxt": ONNX + 'default_model_filename: "iris.onnx"\n'}, "wrong_given_name/1/model.onnx",
         "failed to stat file", "rename it to 'iris.onnx'"),
    Case("given_with_version", {"1/model.onnx": GOOD, "config.pbtxt": ONNX + 'default_model_filename: "1/model.onnx"\n'}, "given_with_version/1",
         "failed to stat file", 'write default_model_filename: "model.onnx"'),
    Case("too_deep", {"1/export/model.onnx": GOOD, "config.pbtxt": ONNX}, "too_deep/1/export/model.onnx", "failed to stat file", "move it to 'too_deep/1/model.onnx'"),
    Case("file_link", {"1/model.onnx": Link("../gone.onnx"), "config.pbtxt": ONNX}, "file_link/1/model.onnx", "failed to stat file", "the link leads to nothing"),
    Case("pickled", {"1/model.pkl": b"\x80\x04", "config.pbtxt": ONNX}, "pickled/1/model.pkl", "failed to stat file", "skl2onnx"),
    Case("pickled_bare", {"1/model.joblib": b"\x80\x04"}, "pickled_bare/1/model.joblib", "Could not determine backend", "skl2onnx"),
    Case("engine", {"1/resnet.engine": b"x", "config.pbtxt": ONNX}, "engine/1/resnet.engine", "failed to stat file", "Serve the ONNX model that it was built from"),
    Case("weights_only", {"1/model.safetensors": b"x"}, "weights_only/1/model.safetensors", "Could not determine backend", "export the model to ONNX"),
    Case("keras", {"1/model.h5": b"x"}, "keras/1/model.h5", "Could not determine backend", "tf2onnx"),
    Case("lfs", {"1/model.onnx": LFS}, "lfs/1/model.onnx", "", "git lfs pull"),
    Case("lfs_with_config", config(ONNX + IO) | {"1/model.onnx": LFS}, "lfs_with_config/1/model.onnx", "", "git lfs pull"),
    Case("empty_file", {"1/model.onnx": b""}, "empty_file/1/model.onnx", "", "copy the model again"),
    Case("web_page", {"1/model.onnx": b"<!DOCTYPE html><html>Not found</html>"}, "web_page/1/model.onnx", "", "download it again"),
    Case("zip_as_onnx", {"1/model.onnx": b"PK\x03\x04rest"}, "zip_as_onnx/1/model.onnx", "", "export the model with torch.onnx.export"),
    Case("gzip_as_onnx", {"1/model.onnx": b"\x1f\x8b\x08rest"}, "gzip_as_onnx/1/model.onnx", "", "unpack it first"),
    Case("pickle_as_onnx", {"1/model.onnx": b"\x80\x04\x95rest"}, "pickle_as_onnx/1/model.onnx", "", "export the model to ONNX"),
    Case("truncated", {"1/model.onnx": GOOD[:-10]}, "truncated/1/model.onnx", "", "export or copy the model again"),
    Case("noise", {"1/model.onnx": b"\xff\xfe this is no model"}, "noise/1/model.onnx", "", "export or copy the model again"),
    Case("lfs_torch", {"1/model.pt": LFS, "config.pbtxt": TORCH}, "lfs_torch/1/model.pt", "", "git lfs pull"),
    Case("state_dict", {"1/model.pt": b"\x80\x02\x8a\x0al", "config.pbtxt": TORCH}, "state_dict/1/model.pt", "", "torch.jit.script"),
    Case("torch_no_archive", {"1/model.pt": b"weights", "config.pbtxt": TORCH}, "torch_no_archive/1/model.pt", "", "torch.jit.script"),
    Case("torch_cut", {"1/model.pt": b"PK\x03\x04", "config.pbtxt": TORCH}, "torch_cut/1/model.pt", "", "copy the model again, and compare the sizes"),
    Case("torch_other_name", {"1/net.pt": b"PK\x03\x04", "config.pbtxt": TORCH}, "torch_other_name/1/net.pt", "unable to find", "rename it to 'model.pt'"),
    Case("python_other_name", {"1/main.py": PYTHON, "config.pbtxt": 'backend: "python"\n' + IO}, "python_other_name/1/main.py", "Python model file not found", "rename it to 'model.py'"),
    Case("python_mistyped", {"1/model.py": b"import abc\n\nclass TritonPythonmodel:\n    pass\n"}, "python_mistyped/1/model.py:3:7", NO_CLASS, "should 'TritonPythonmodel' have that name?", served=NO_ATTRIBUTE),
    Case("python_longer", {"1/model.py": b"class Helper:\n    pass\nclass TritonPythonModell(Helper):\n    pass\n"}, "python_longer/1/model.py:3:7", NO_CLASS, "should 'TritonPythonModell' have that name?", served=NO_ATTRIBUTE),
    Case("python_syntax", {"1/model.py": PYTHON + b"    def g(self)\n        pass\n"}, "python_syntax/1/model.py:4:16", "SyntaxError: expected ':'", ""),
    Case("python_no_class_at_all", {"1/model.py": b"def execute(requests):\n    return []\n"}, "python_no_class_at_all/1/model.py", NO_CLASS, "a class of that name", served=NO_ATTRIBUTE),
    Case("python_no_class", {"1/model.py": b"class MyModel:\n    pass\n", "config.pbtxt": 'backend: "python"\n' + IO}, "python_no_class/1/model.py:1:7", NO_CLASS, "'MyModel' must have that name", served=NO_ATTRIBUTE),
    Case("python_empty", {"1/model.py": b"", "config.pbtxt": 'backend: "python"\n' + IO}, "python_empty/1/model.py", "", "copy the model again"),
    Case("external_missing", {"1/model.onnx": with_external_weights()}, "external_missing/1/model.onnx", "", "copy it beside the model's file"),
    Case("config_name", {"config.pbtext": ONNX + IO, "1/iris.onnx": GOOD}, "config_name/config.pbtext", "Could not determine backend", "rename it to 'config.pbtxt'"),
    Case("config_case", {"Config.pbtxt": ONNX, "1/model.onnx": GOOD}, "config_case/Config.pbtxt", "is not read", "rename it to 'config.pbtxt'", "warning"),
    Case("config_txt", {"config.txt": ONNX, "1/model.onnx": GOOD}, "config_txt/config.txt", "is not read", "rename it to 'config.pbtxt'", "warning"),
    Case("config_json", {"config.json": "{}", "1/model.onnx": GOOD}, "config_json/config.json", "is not read", "rename it to 'config.pbtxt'", "warning"),
    Case("config_in_version", {"1/config.pbtxt": ONNX, "1/model.onnx": GOOD}, "config_in_version/1/config.pbtxt", "is not read here", "move it to 'config_in_version/config.pbtxt'", "warning"),
    Case("second_version", {"1/model.onnx": GOOD, "v2/model.onnx": GOOD}, "second_version/v2", "is not a version", "rename it to '2'", "warning"),
    Case("lost_labels", {"1/model.onnx": GOOD, "config.pbtxt": ONNX + IO.replace('name: "y"', 'name: "y" label_filename: "labels.txt"')}, "lost_labels/labels.txt", "failed to open text file", "put the file there"),
]
CONFIG = [
    Case("unknown_field", config('backend: "onnxruntime"\ninput [ { name: "x" datatype: TYPE_FP32 } ]\n'), "unknown_field/config.pbtxt:2:21", "datatype", "data_type"),
    Case("curly_quotes", config('backend: \u201connxruntime\u201d\n'), "curly_quotes/config.pbtxt:1:10", "", ""),
    Case("missing_brace", config('backend: "onnxruntime"\ninput [ { name: "x"\n'), "missing_brace/config.pbtxt:3:1", "", ""),
    Case("number_as_text", config('max_batch_size: "8"\n'), "number_as_text/config.pbtxt:1:17", "", ""),
    Case("unknown_type", config('backend: "onnxruntime"\ninput [ { name: "x" data_type: FP32 dims: [ 3 ] } ]\n'), "unknown_type/config.pbtxt:2:32", "FP32", "TYPE_FP32"),
    Case("other_folder_name", config('name: "other"\nbackend: "onnxruntime"\n'), "other_folder_name/config.pbtxt:1:7", "other", 'write `name: "other_folder_name"`'),
    Case("wrong_type", config(ONNX + IO.replace("TYPE_FP32", "TYPE_INT64", 1)), "wrong_type/config.pbtxt:2:32", "TYPE_INT64", "write TYPE_FP32"),
    Case("wrong_input_name", config(ONNX + IO.replace('"x"', '"input"')), "wrong_input_name/config.pbtxt:2:17",
         "unexpected inference input 'input', allowed inputs are: x", "write the inputs as the model names them"),
    Case("near_input_name", {"1/model.onnx": onnx_model([tensor("image")]), "config.pbtxt": ONNX + IO.replace('"x"', '"imge"')}, "near_input_name/config.pbtxt:2:17",
         "allowed inputs are: image", "did you mean 'image'?"),
    Case("wrong_output_name", config("max_batch_size: 8\n" + ONNX + IO.replace('"y"', '"output"')), "wrong_output_name/config.pbtxt:4:18", "allowed outputs are: y", "write the outputs as the model names them"),
    Case("one_input_more", config(ONNX + IO.replace("] } ]", '] }, { name: "z" data_type: TYPE_FP32 dims: [ 3 ] } ]', 1)), "one_input_more/config.pbtxt:2:65", "unexpected inference input 'z'", "remove what it does not have"),
    Case("one_input_less", {"1/model.onnx": onnx_model([tensor("x"), tensor("z")]), "config.pbtxt": ONNX + IO}, "one_input_less/config.pbtxt:2:1", "model provides 2", "list every input of the model"),
    Case("fixed_batch", {"config.pbtxt": "max_batch_size: 8\n" + ONNX + IO, "1/model.onnx": FIXED}, "fixed_batch/config.pbtxt:3:42", "for the model to support batching",
         "write `max_batch_size: 0` and the whole shape, `dims: [ 1, 3 ]`"),
    Case("fixed_batch_bare", {"config.pbtxt": "max_batch_size: 8\n" + ONNX, "1/model.onnx": FIXED}, "fixed_batch_bare/config.pbtxt:1:17", "model does not support batching",
         "write `max_batch_size: 0`"),
    Case("batch_in_dims", config("max_batch_size: 8\n" + ONNX + IO.replace("[ 3 ]", "[ -1, 3 ]")), "batch_in_dims/config.pbtxt:3:42", "the model expects 2 dimensions",
         "write `dims: [ 3 ]`: where max_batch_size is above 0, the batch dimension is not part of dims"),
    Case("batch_forgotten", config(ONNX + IO), "batch_forgotten/config.pbtxt:2:42", "the model expects 2 dimensions", "write `dims: [ -1, 3 ]`, as in the model; or `max_batch_size: 1`"),
    Case("backend_onnx", config('backend: "onnx"\n' + IO), "backend_onnx/config.pbtxt:1:10", "backend 'onnx'", 'did you mean `backend: "onnxruntime"`?'),
    Case("backend_tensorrt", config('backend: "tensorrt"\n' + IO), "backend_tensorrt/config.pbtxt:1:10", "tensorrt", "Serve the ONNX model that it was built from"),
    Case("environment_missing", config('backend: "python"\n' + IO + 'parameters { key: "EXECUTION_ENV_PATH" value { string_value: "env.tar.gz" } }\n') | {"1/model.py": PYTHON},
         "environment_missing/config.pbtxt:4:62", "Failed to get the canonical path for", "put the environment there, or correct the path"),
    Case("no_dims", config(ONNX + 'input [ { name: "x" data_type: TYPE_FP32 } ]\n'), "no_dims/config.pbtxt:2:9", "", ""),
    Case("zero_dim", config(ONNX + IO.replace("[ 3 ]", "[ 0 ]", 1)), "zero_dim/config.pbtxt:2:50", "", ""),
    Case("negative_batch", config("max_batch_size: -1\n" + ONNX), "negative_batch/config.pbtxt:1:17", "", ""),
    Case("version_not_there", {"1/model.onnx": GOOD, "config.pbtxt": ONNX + "version_policy { specific { versions: [ 3 ] } }"}, "version_not_there/config.pbtxt:2:29", NO_VERSION,
         "the folder has version 1: name one of them, or add the folder 'version_not_there/3'"),
    Case("one_version_not_there", {"1/model.onnx": GOOD, "config.pbtxt": ONNX + "version_policy { specific { versions: [ 1, 3 ] } }"}, "one_version_not_there/config.pbtxt:2:44",
         "version 3 is specified for model 'one_version_not_there', but the version directory is not present", "add the folder 'one_version_not_there/3'", "warning"),
    Case("no_version_chosen", {"1/model.onnx": GOOD, "config.pbtxt": ONNX + "version_policy { latest { num_versions: 0 } }"}, "no_version_chosen/config.pbtxt:2:1", NO_VERSION,
         "the folder has version 1, and the policy chooses none"),
]


def ensemble(*steps, inputs="x", outputs="y", type="TYPE_FP32", dims="3", batch=4):
    """Of steps that are (model, inputs, outputs): names of the model and of the ensemble, `x=a`."""

    def tensors(side, names):
        return f"{side} [ " + ", ".join(f'{{ name: "{name}" data_type: {type} dims: [ {dims} ] }}' for name in names.split()) + " ]\n"

    def entries(map, pairs):
        return "".join(f'    {map} {{ key: "{pair.split("=")[0]}" value: "{pair.split("=")[1]}" }}\n' for pair in pairs.split())

    written = []
    for model, given, made in steps:
        name, _, version = model.partition(":")
        written.append(f'  {{ model_name: "{name}" model_version: {version or -1}\n{entries("input_map", given)}{entries("output_map", made)}  }}')
    head = f'platform: "ensemble"\nmax_batch_size: {batch}\n{tensors("input", inputs)}{tensors("output", outputs)}'
    return {"1": FOLDER, "config.pbtxt": head + "ensemble_scheduling { step [\n" + ",\n".join(written) + "\n] }\n"}


CIRCLE = "circular dependency between ensembles: {0} -> ... -> "
NOT_ITSELF = "an ensemble cannot be a step of itself, nor of its own steps"
ENSEMBLES = [
    Case("ensemble_unknown", ensemble(("nobody", "x=x", "y=y")), "ensemble_unknown/config.pbtxt:6:17", "not available or ambiguous: nobody", "the repository has no model `nobody`: add its folder"),
    Case("ensemble_near", ensemble(("fin", "x=x", "y=y")), "ensemble_near/config.pbtxt:6:17", "not available or ambiguous: fin", "did you mean `fine`?"),
    Case("ensemble_version", ensemble(("fine:3", "x=x", "y=y")), "ensemble_version/config.pbtxt:6:39", "depends on 'fine' whose required version 3 is not loaded.", "write `model_version: -1` for the newest, or one that is loaded: 1"),
    Case("ensemble_key", ensemble(("fine", "X1=x", "y=y")), "ensemble_key/config.pbtxt:7:5", "ensemble tensor x is mapping to non-existing input X1 in model fine", "did you mean `x`?"),
    Case("ensemble_first_type", ensemble(("fine", "x=x", "y=y"), type="TYPE_INT64"), "ensemble_first_type/config.pbtxt:7:5",
         "ensemble tensor x: inconsistent data type: TYPE_INT64 is inferred from model ensemble_first_type while TYPE_FP32 is inferred from model fine", "correct the configuration that is wrong"),
    Case("ensemble_shape", ensemble(("fine", "x=x", "y=y"), dims="5"), "ensemble_shape/config.pbtxt:7:5", "ensemble tensor x: inconsistent shape: [-1,5] is inferred", "correct the configuration that is wrong"),
    Case("ensemble_between", ensemble(("fine", "x=x", "y=middle"), ("longs", "x=middle", "y=y")), "ensemble_between/config.pbtxt:11:5",
         "ensemble tensor middle: inconsistent data type: TYPE_FP32 is inferred from model fine while TYPE_INT64 is inferred from model longs", "correct the configuration that is wrong"),
    Case("ensemble_batch", ensemble(("fine", "x=x", "y=y"), batch=64), "ensemble_batch/config.pbtxt:2:17", "allows maximum batch size 64, but it contains model fine which only allows maximum batch size to be 4", "write `max_batch_size: 4` or less here"),
    Case("ensemble_no_input", ensemble(("fine", "x=a", "y=y")), "ensemble_no_input/config.pbtxt:3:17", "ensemble input 'x' for ensemble ensemble_no_input' is not used", "did you mean `a`?"),
    Case("ensemble_no_output", ensemble(("fine", "x=x", "y=z")), "ensemble_no_output/config.pbtxt:4:18", "ensemble output 'y' for ensemble ensemble_no_output' is not used", "did you mean `z`?"),
    Case("ensemble_unused_output", ensemble(("fine", "x=x", "y=y"), ("longs", "x=x", "y=z")), "ensemble_unused_output/config.pbtxt:12:34", "ensemble tensor 'z' is unused in ensemble 'ensemble_unused_output'", "use the tensor in another step or as an output"),
    Case("ensemble_itself", ensemble(("ensemble_itself", "x=x", "y=y")), "ensemble_itself/config.pbtxt:6:17", CIRCLE + "ensemble_itself", NOT_ITSELF),
    Case("ensemble_circle_a", ensemble(("fine", "x=x", "y=m"), ("ensemble_circle_b", "x=m", "y=y")), "ensemble_circle_a/config.pbtxt:10:17", CIRCLE + "ensemble_circle_b -> {0}", NOT_ITSELF),
    Case("ensemble_circle_b", ensemble(("ensemble_circle_a", "x=x", "y=y")), "ensemble_circle_b/config.pbtxt:6:17", CIRCLE + "ensemble_circle_a -> {0}", NOT_ITSELF),
]
CASES = LAYOUT + CONFIG + ENSEMBLES


def write(root, files):
    for path, content in files.items():
        path = Path(root) / path
        path.parent.mkdir(parents=True, exist_ok=True)
        if content is FOLDER:
            path.mkdir(exist_ok=True)
        elif isinstance(content, Link):
            path.symlink_to(content.target)
        else:
            path.write_bytes(content if isinstance(content, bytes) else content.encode())
