"""The metrics of the backend."""

import triton_python_backend_utils as pb


class Counted:
    def __init__(self, labels):
        family = pb.MetricFamily(name="words:generated_total", description="Number of generated words", kind=pb.MetricFamily.COUNTER)
        self.family, self.words = family, family.Metric(labels=labels)

    def word(self):
        self.words.increment(1)
