"""Answers when as many instances are at work as there are: 1, or 0 if the others did not come within WAIT seconds."""

import time
from pathlib import Path

import numpy as np
import triton_python_backend_utils as pb_utils

PLACE = Path(__file__).parent


class TritonPythonModel:
    def initialize(self, args):
        self.mark = PLACE / f"{args['model_instance_name']}.at_work"

    def execute(self, requests):
        return [self.answer(request) for request in requests]

    def answer(self, request):
        wait = int(pb_utils.get_input_tensor_by_name(request, "WAIT").as_numpy()[0])
        self.mark.touch()
        end = time.monotonic() + wait
        met = False
        while not met and time.monotonic() < end:
            met = len(list(PLACE.glob("*.at_work"))) > 1
            time.sleep(0.01)
        return pb_utils.InferenceResponse([pb_utils.Tensor("MET", np.array([met], np.int32))])
