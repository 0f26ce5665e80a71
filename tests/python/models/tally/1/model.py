"""Keeps a family of metrics, and makes its metrics anew for each request."""

import numpy as np
import triton_python_backend_utils as pb


class TritonPythonModel:
    def initialize(self, args):
        self.seen = pb.MetricFamily(name="own_tally_seen", description="values", kind=pb.MetricFamily.COUNTER)
        self.spread = pb.MetricFamily(name="own_tally_spread", description="their sizes", kind=pb.MetricFamily.HISTOGRAM)

    def execute(self, requests):
        return [self.answer(pb.get_input_tensor_by_name(request, "IN").as_numpy()) for request in requests]

    def answer(self, values):
        for value in values:
            self.seen.Metric(labels={"sign": "minus" if value < 0 else "plus", "by": "model"}).increment(1)
            self.spread.Metric(labels={}, buckets=[1.0, 10.0]).observe(float(value))
        seen = [self.seen.Metric(labels={"by": "model", "sign": sign}).value() for sign in ("minus", "plus")]
        return pb.InferenceResponse([pb.Tensor("OUT", np.array(seen))])
