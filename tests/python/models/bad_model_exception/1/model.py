import triton_python_backend_utils as pb


class TritonPythonModel:
    def initialize(self, args):
        raise pb.TritonModelException("told by the model")

    def execute(self, requests):
        return []
