"""A counter, a gauge and a histogram of the model's own."""

import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def initialize(self, args):
        labels = {"model": args["model_name"], "version": args["model_version"]}
        make = pb_utils.MetricFamily
        self.families = [
            make(name="own_example_requests_total", description="Requests seen", kind=make.COUNTER),
            make(name="own_example_last", description="Last value", kind=make.GAUGE),
            make(name="own_example_values", description="Values seen", kind=make.HISTOGRAM),
        ]
        self.requests, self.last = (family.Metric(labels=labels) for family in self.families[:2])
        self.values = self.families[2].Metric(labels=labels, buckets=[0.5, 1, 10])

    def execute(self, requests):
        responses = []
        for request in requests:
            values = pb_utils.get_input_tensor_by_name(request, "IN").as_numpy()
            self.requests.increment(1)
            for value in values:
                self.last.set(value)
                self.values.observe(value)
            said = np.array([self.requests.value(), self.last.value()])
            responses.append(pb_utils.InferenceResponse(output_tensors=[pb_utils.Tensor("OUT", said)]))
        return responses
