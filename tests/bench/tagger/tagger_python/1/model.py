import os

import onnxruntime
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    """The same tagger where the server has no ONNX backend: ONNX Runtime inside a Python model."""

    def initialize(self, args):
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        path = os.path.join(args["model_repository"], args["model_version"], "model.onnx")
        self.session = onnxruntime.InferenceSession(path, options)

    def execute(self, requests):
        return [self.tag(request) for request in requests]

    def tag(self, request):
        names = ("sorted_lengths", "sentence_tensor")
        feed = {name: pb_utils.get_input_tensor_by_name(request, name).as_numpy() for name in names}
        features, lengths = self.session.run(["features", "lengths"], feed)
        return pb_utils.InferenceResponse([pb_utils.Tensor("features", features), pb_utils.Tensor("lengths", lengths)])
