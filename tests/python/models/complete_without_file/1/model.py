"""No config.pbtxt: model.py completes the whole configuration."""

import triton_python_backend_utils as pb


class TritonPythonModel:
    @staticmethod
    def auto_complete_config(config):
        config.add_input({"name": "IN", "data_type": "TYPE_INT32", "dims": [-1]})
        config.add_output({"name": "OUT", "data_type": "TYPE_INT32", "dims": [-1]})
        config.set_model_transaction_policy({"decoupled": True})
        return config

    def execute(self, requests):
        for request in requests:
            values = request.inputs()[0].as_numpy()
            sender = request.get_response_sender()
            sender.send(pb.InferenceResponse([pb.Tensor("OUT", values)]), flags=pb.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
