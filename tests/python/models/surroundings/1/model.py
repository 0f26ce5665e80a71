"""Logger, printing, metrics of its own, and control over other models."""

import json
import os
import sys

import numpy as np
import triton_python_backend_utils as pb

KEPT = []


def outcome(call, *args):
    try:
        return call(*args)
    except BaseException as error:
        return {"raised": type(error).__name__, "text": str(error)}


def case_log():
    pb.Logger.log("logged plainly")
    pb.Logger.log("logged as warning", pb.Logger.WARNING)
    pb.Logger.log("logged by keyword", level=pb.Logger.ERROR)
    pb.Logger.log_info("logged info")
    pb.Logger.log_warn("logged warn")
    pb.Logger.log_error("logged error")
    pb.Logger.log_verbose("logged verbose")
    pb.Logger.log_info("logged \u00fc and\nsecond line")
    return "done"


def case_log_wrong():
    return {
        "number": outcome(pb.Logger.log_info, 5), "none": outcome(pb.Logger.log_info, None), "nothing": outcome(pb.Logger.log_info),
        "level": outcome(pb.Logger.log, "x", "INFO"), "object": outcome(lambda: type(pb.Logger()).__name__),
    }


def case_log_levels():
    names = ["INFO", "WARNING", "ERROR", "VERBOSE"]
    return [outcome(lambda: [str(getattr(pb.Logger, n)), type(getattr(pb.Logger, n)).__name__, int(getattr(pb.Logger, n))]) for n in names]


def case_log_level_class():
    return sorted(n for n in dir(pb.LogLevel) if n.isupper()) if hasattr(pb, "LogLevel") else "no LogLevel"


def case_command_line():
    """The interpreter as model code finds it: `argparse` and the like must not see how the process was started."""
    import argparse
    import unittest

    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", default=3)
    main = sys.modules["__main__"]
    ran = unittest.main(exit=False).result.testsRun
    return [sys.argv, sys.orig_argv, parser.parse_args().steps, ran, main.__name__, str(main.__spec__), str(main.__package__), hasattr(main, "__file__"), "" in sys.path]


def case_print():
    print("printed to stdout", flush=True)
    print("printed to stderr", file=sys.stderr, flush=True)
    os.write(1, b"written to descriptor 1\n")
    os.write(2, b"written to descriptor 2\n")
    sys.stdout.write("no newline at its end")
    print(flush=True)
    return "done"


def case_counter():
    family = pb.MetricFamily(name="own_counter", description="counts", kind=pb.MetricFamily.COUNTER)
    metric = family.Metric(labels={"model": "x", "part": "1"})
    KEPT.extend([family, metric])
    metric.increment(2)
    metric.increment(0.5)
    return [metric.value(), outcome(metric.increment, -1), metric.value(), outcome(metric.set, 7), outcome(metric.observe, 1), metric.value()]


def case_gauge():
    family = pb.MetricFamily(name="own_gauge", description="goes up and down", kind=pb.MetricFamily.GAUGE)
    metric = family.Metric(labels={})
    KEPT.extend([family, metric])
    metric.set(5.5)
    metric.increment(-2)
    return [metric.value(), outcome(metric.observe, 1), outcome(metric.increment, 0), metric.value()]


def case_histogram():
    family = pb.MetricFamily(name="own_histogram", description="spreads", kind=pb.MetricFamily.HISTOGRAM)
    metric = family.Metric(labels={"a": "b"}, buckets=[0.1, 1.0, 10.0])
    KEPT.extend([family, metric])
    for value in (0.05, 0.5, 5, 50):
        metric.observe(value)
    return [outcome(metric.value), outcome(metric.increment, 1), outcome(metric.set, 1)]


def case_metric_no_labels():
    family = pb.MetricFamily(name="own_bare", description="without labels", kind=pb.MetricFamily.GAUGE)
    metric = family.Metric()
    KEPT.extend([family, metric])
    metric.set(3)
    return metric.value()


def case_same_family_twice():
    first = pb.MetricFamily(name="own_twice", description="one", kind=pb.MetricFamily.COUNTER)
    second = outcome(lambda: pb.MetricFamily(name="own_twice", description="one", kind=pb.MetricFamily.COUNTER))
    KEPT.extend([first, second])
    return "made" if isinstance(second, pb.MetricFamily) else second


def case_same_family_other_kind():
    first = pb.MetricFamily(name="own_kinds", description="one", kind=pb.MetricFamily.COUNTER)
    second = outcome(lambda: pb.MetricFamily(name="own_kinds", description="one", kind=pb.MetricFamily.GAUGE))
    KEPT.append(first)
    return "made" if isinstance(second, pb.MetricFamily) else second


def case_same_metric_twice():
    family = pb.MetricFamily(name="own_same", description="one", kind=pb.MetricFamily.COUNTER)
    first, second = family.Metric(labels={"a": "1"}), family.Metric(labels={"a": "1"})
    KEPT.extend([family, first, second])
    first.increment(1)
    second.increment(2)
    return [first.value(), second.value()]


def case_metric_wrong():
    family = pb.MetricFamily(name="own_wrong", description="one", kind=pb.MetricFamily.COUNTER)
    KEPT.append(family)
    return {
        "name": outcome(lambda: type(pb.MetricFamily(name="bad name!", description="x", kind=pb.MetricFamily.COUNTER)).__name__),
        "empty": outcome(lambda: type(pb.MetricFamily(name="", description="x", kind=pb.MetricFamily.COUNTER)).__name__),
        "nothing": outcome(lambda: type(pb.MetricFamily()).__name__), "kind": outcome(lambda: type(pb.MetricFamily(name="x", description="x", kind=77)).__name__),
        "labels": outcome(lambda: type(family.Metric(labels={"a": 5})).__name__), "label_list": outcome(lambda: type(family.Metric(labels=["a"])).__name__),
        "label_name": outcome(lambda: type(family.Metric(labels={"bad label": "x"})).__name__),
        "counter_buckets": outcome(lambda: type(family.Metric(labels={"q": "1"}, buckets=[1.0])).__name__),
        "no_buckets": outcome(lambda: type(kept(pb.MetricFamily(name="own_h2", description="x", kind=pb.MetricFamily.HISTOGRAM)).Metric(labels={})).__name__),
        "text_value": outcome(lambda: family.Metric(labels={"z": "1"}).increment("1")),
        "bad_buckets": outcome(lambda: type(kept(pb.MetricFamily(name="own_h3", description="x", kind=pb.MetricFamily.HISTOGRAM)).Metric(labels={}, buckets=[2.0, 1.0])).__name__),
    }


def kept(thing):
    KEPT.append(thing)
    return thing


def case_metric_gone():
    """What nobody holds any more leaves the page."""
    family = pb.MetricFamily(name="own_gone", description="gone", kind=pb.MetricFamily.GAUGE)
    metric = family.Metric(labels={})
    metric.set(1)
    del metric, family
    return "gone"


def case_metric_outlives_family():
    metric = pb.MetricFamily(name="own_outlives", description="x", kind=pb.MetricFamily.GAUGE).Metric(labels={})
    KEPT.append(metric)
    return outcome(lambda: (metric.set(4), metric.value())[1])


def case_metric_kinds():
    return [str(getattr(pb.MetricFamily, n)) for n in ("COUNTER", "GAUGE", "HISTOGRAM")]


def case_many_observations():
    family = pb.MetricFamily(name="own_many", description="many", kind=pb.MetricFamily.COUNTER)
    metric = family.Metric(labels={})
    KEPT.extend([family, metric])
    for _ in range(500):
        metric.increment(1)
    return metric.value()


def case_control():
    steps = [pb.is_model_ready("spare")]
    steps.append(outcome(pb.load_model, "spare"))
    steps.append(pb.is_model_ready("spare"))
    steps.append(outcome(pb.load_model, "spare"))
    steps.append(outcome(pb.unload_model, "spare"))
    steps.append(outcome(pb.unload_model, "spare"))
    return steps


def case_control_keywords():
    return [outcome(lambda: pb.load_model(model_name="spare")), outcome(lambda: pb.unload_model(model_name="spare", unload_dependents=True))]


def case_control_unknown():
    return [outcome(pb.load_model, "nobody"), outcome(pb.load_model)]


def case_control_unload_unknown():
    return outcome(pb.unload_model, "nobody")


def case_control_load_no_name():
    return outcome(pb.load_model, "")


def case_control_config():
    config = json.dumps({"backend": "python", "max_batch_size": 3, "input": [{"name": "IN", "data_type": "TYPE_INT32", "dims": [1]}], "output": [{"name": "OUT", "data_type": "TYPE_INT32", "dims": [1]}]})
    loaded = outcome(lambda: pb.load_model(model_name="spare", config=config))
    return [loaded, pb.is_model_ready("spare")]


def case_control_bad_config():
    return [outcome(lambda: pb.load_model(model_name="spare", config=c)) for c in ("{", json.dumps({"max_batch_size": "x"}))]


def case_control_files():
    with open(os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(__file__))), "spare", "1", "model.py"), "rb") as file:
        source = file.read()
    config = json.dumps({"backend": "python", "input": [{"name": "IN", "data_type": "TYPE_INT32", "dims": [1]}], "output": [{"name": "OUT", "data_type": "TYPE_INT32", "dims": [1]}]})
    loaded = outcome(lambda: pb.load_model(model_name="sent", config=config, files={"file:1/model.py": source}))
    ready = pb.is_model_ready("sent")
    return [loaded, ready, outcome(pb.unload_model, "sent")]


def case_control_files_without_config():
    return outcome(lambda: pb.load_model(model_name="sent", files={"file:1/model.py": b"x"}))


class TritonPythonModel:
    def execute(self, requests):
        return [self.answer(request) for request in requests]

    @staticmethod
    def answer(request):
        case = bytes(pb.get_input_tensor_by_name(request, "CASE").as_numpy()).decode()
        text = json.dumps(outcome(globals()["case_" + case]), default=repr)
        return pb.InferenceResponse([pb.Tensor("ANSWER", np.frombuffer(text.encode(), dtype=np.uint8))])
