class TritonPythonModel:
    def initialize(self, args):
        raise RuntimeError("cannot begin")

    def execute(self, requests):
        return []
