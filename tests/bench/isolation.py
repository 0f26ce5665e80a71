"""Models in processes of their own, beside the same models in the server: what isolation costs a request."""

import tempfile

import measure
import models
import servers
from repositories import EXAMPLES, add_sub_config, copy_example, identity_config, write_model

ISOLATED = 'parameters { key: "isolation" value { string_value: "process" } }\n'
# Elements of a large tensor: 1 MiB.
LARGE = 1 << 18


def write_models(folder):
    """Each model twice; what distinguishes one from the other is the parameter alone."""
    for suffix, more in (("", ""), ("_isolated", ISOLATED)):
        write_model(folder, f"add_sub{suffix}", "galatea", "add_sub", add_sub_config(more=more))
        write_model(folder, f"identity{suffix}", "galatea", "identity", identity_config(more=more))
        for example in ("simple", "magika"):
            config = (EXAMPLES / example / "config.pbtxt").read_text().replace(f'name: "{example}"', "", 1)
            copy_example(folder, example, config + more, name=f"{example}{suffix}")


def cases(folder):
    """(model, requests at once, what perf_analyzer is told besides)."""
    return [
        ("add_sub", 1, ()),
        ("add_sub", 16, ()),
        ("identity", 1, ("--shape", f"INPUT0:{LARGE}")),
        ("simple", 1, ()),
        ("simple", 16, ()),
        ("magika", 1, ("--input-data", models.input_file(folder, "magika"))),
        ("magika", 4, ("--input-data", models.input_file(folder, "magika"))),
    ]


def compared(args):
    """Each model in the server, isolated, and the second over the first."""
    rows, raw = [], []
    with tempfile.TemporaryDirectory() as folder:
        write_models(folder)
        with servers.galatea(folder) as server:
            for model, concurrency, more in cases(tempfile.mkdtemp(dir=folder, prefix=".")):
                runs = {
                    name: lambda name=name: measure.perf(server, name, "grpc", concurrency, args.seconds, *more)
                    for name in (model, f"{model}_isolated")
                }
                what = f"{model}, grpc, concurrency {concurrency}"
                medians, measured = measure.interleaved(args.rounds, runs)
                rows += rows_of(what, *medians.values())
                raw.append({"what": what, "runs": measured})
    return rows, raw


def rows_of(what, here, isolated):
    ratios = {key: isolated[key] / here[key] for key in here}
    named = {"in the server": here, "isolated": isolated, "isolated / in the server": ratios}
    return [{"what": what, "server": server, **figures} for server, figures in named.items()]
