"""A response per element of IN, each after the milliseconds that DELAY says, from a thread per request."""

import json
import threading
import time

import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def initialize(self, args):
        config = json.loads(args["model_config"])
        if not pb_utils.using_decoupled_model_transaction_policy(config):
            raise pb_utils.TritonModelException("the model `%s` can generate any number of responses: it must be decoupled" % args["model_name"])
        self.out_type = pb_utils.triton_string_to_numpy(pb_utils.get_output_config_by_name(config, "OUT")["data_type"])
        self.idx_type = pb_utils.triton_string_to_numpy(pb_utils.get_output_config_by_name(config, "IDX")["data_type"])
        self.inflight = 0
        self.lock = threading.Condition()

    def execute(self, requests):
        for request in requests:
            values, delays, wait = (pb_utils.get_input_tensor_by_name(request, name).as_numpy() for name in ("IN", "DELAY", "WAIT"))
            thread = threading.Thread(target=self.respond, args=(request.get_response_sender(), values, delays))
            thread.daemon = True
            with self.lock:
                self.inflight += 1
            thread.start()
            time.sleep(wait[0] / 1000)
        return None

    def respond(self, sender, values, delays):
        for index, value in enumerate(values):
            time.sleep(delays[index] / 1000)
            tensors = [pb_utils.Tensor("IDX", np.array([index], self.idx_type)), pb_utils.Tensor("OUT", np.array([value], self.out_type))]
            sender.send(pb_utils.InferenceResponse(output_tensors=tensors))
        sender.send(flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
        with self.lock:
            self.inflight -= 1
            self.lock.notify_all()

    def finalize(self):
        with self.lock:
            self.lock.wait_for(lambda: self.inflight == 0, 30)
        print("Finalize complete!")
