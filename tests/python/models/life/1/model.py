"""Writes initialize and finalize to a file beside it, and exits in the way that CASE names."""

import os
import signal
import sys
from pathlib import Path

import numpy as np
import triton_python_backend_utils as pb


class TritonPythonModel:
    def initialize(self, args):
        self.file = Path(args["model_repository"]) / "told.txt"
        self.tell("initialize")

    def tell(self, text):
        with open(self.file, "a") as file:
            file.write(text + "\n")

    def execute(self, requests):
        case = bytes(requests[0].inputs()[0].as_numpy()).decode()
        if case == "sys_exit":
            sys.exit(3)
        if case == "os_exit":
            os._exit(3)
        if case == "killed":
            os.kill(os.getpid(), signal.SIGKILL)
        if case == "segfault":
            os.kill(os.getpid(), signal.SIGSEGV)
        if case == "keyboard_interrupt":
            raise KeyboardInterrupt("not me")
        pid = np.array([os.getpid()], np.int32)
        return [pb.InferenceResponse([pb.Tensor("PID", pid)]) for _ in requests]

    def finalize(self):
        self.tell("finalize")
