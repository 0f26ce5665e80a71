"""Command lines of the load tool for the comparison with the real one. The real one runs them on a server of `Case.target`.

In a line, {name} is a file of DATA, {metrics} the address of the metrics; the server's address is added."""

import base64
import json
from dataclasses import dataclass, field

# Three short windows, stable whatever they say. A window without a request is an error: the machine may stand still for
# less than this.
SHORT = "-p 150 -s 1000000 -r 3"
ONE, TWO = list(range(16)), [2] * 16
SUM, DIFFERENCE = [a + 2 for a in ONE], [a - 2 for a in ONE]
PAIR = {"INPUT0": ONE, "INPUT1": TWO}


def b64(values):
    return base64.b64encode(b"".join(v.to_bytes(4, "little", signed=True) for v in values)).decode()


def repeat(count, delay):
    shape = [count]
    return {"data": [{
        "IN": {"content": list(range(count)), "shape": shape},
        "DELAY": {"content": [delay] * count, "shape": shape}, "WAIT": [0],
    }]}


DATA = {
    "flat.json": {"data": [PAIR]},
    "many.json": {"data": [PAIR, {"INPUT0": TWO, "INPUT1": ONE}]},
    "three.json": {"data": [PAIR, {"INPUT0": TWO, "INPUT1": ONE}, {"INPUT0": TWO, "INPUT1": TWO}]},
    "content.json": {"data": [{name: {"content": v, "shape": [16]} for name, v in PAIR.items()}]},
    "content_no_shape.json": {"data": [{"INPUT0": {"content": ONE}, "INPUT1": TWO}]},
    "b64.json": {"data": [{name: {"b64": b64(v)} for name, v in PAIR.items()}]},
    "content_b64.json": {"data": [{"INPUT0": {"content": {"b64": b64(ONE)}, "shape": [16]}, "INPUT1": TWO}]},
    "streams.json": {"data": [[PAIR], [{"INPUT0": TWO, "INPUT1": ONE}, PAIR]]},
    "right.json": {"data": [PAIR], "validation_data": [{"OUTPUT0": SUM, "OUTPUT1": DIFFERENCE}]},
    "right_partly.json": {"data": [PAIR], "validation_data": [{"OUTPUT0": SUM}]},
    "wrong.json": {"data": [PAIR], "validation_data": [{"OUTPUT0": SUM, "OUTPUT1": SUM}]},
    "validation_size.json": {"data": [PAIR], "validation_data": [{"OUTPUT0": SUM[:4]}]},
    "validation_length.json": {"data": [PAIR], "validation_data": [{"OUTPUT0": SUM}, {"OUTPUT0": SUM}]},
    "short.json": {"data": [{"INPUT0": ONE[:4], "INPUT1": TWO}]},
    "missing.json": {"data": [{"INPUT0": ONE}]},
    "unknown.json": {"data": [{**PAIR, "NOPE": TWO}]},
    "no_data.json": {"info": []},
    "empty.json": {"data": []},
    "texts.json": {"data": [{"INPUT0": ["a"] * 16, "INPUT1": TWO}]},
    "fractions.json": {"data": [{"INPUT0": [1.5] * 16, "INPUT1": TWO}]},
    "one_text.json": {"data": [{"INPUT0": "abc", "INPUT1": TWO}]},
    "nested.json": {"data": [{"INPUT0": [ONE], "INPUT1": [TWO]}]},
    "wrong_shape.json": {"data": [{"INPUT0": {"content": ONE, "shape": [8]}, "INPUT1": TWO}]},
    "batched_shape.json": {"data": [{"INPUT0": {"content": ONE, "shape": [1, 16]}, "INPUT1": TWO}]},
    "negative_shape.json": {"data": [{"INPUT0": {"content": ONE, "shape": [-1]}, "INPUT1": TWO}]},
    "bad_b64.json": {"data": [{"INPUT0": {"b64": "!!!!"}, "INPUT1": TWO}]},
    "short_b64.json": {"data": [{"INPUT0": {"b64": b64(ONE[:3])}, "INPUT1": TWO}]},
    "rows.json": {"data": [{"INPUT0": [1.0, 2.0, 3.0]}]},
    "shapes.json": {"data": [{"INPUT0": {"content": [1.0] * n, "shape": [n]}} for n in (3, 2)]},
    "words.json": {"data": [{"INPUT0": ["hello"]}, {"INPUT0": ["w\u00f6rld"]}]},
    "words_b64.json": {"data": [{"INPUT0": {"b64": base64.b64encode(b"\5\0\0\0hello").decode()}}]},
    "words_right.json": {"data": [{"INPUT0": ["hello"]}], "validation_data": [{"OUTPUT0": ["hello"]}]},
    "sentence.json": {"data": [{"sentence_bytes": [72] * 70}]},
    "repeat.json": repeat(4, 0),
    "repeat10.json": repeat(10, 2),
    "steps.json": {"data": [[{"INPUT": [1]}, {"INPUT": [2]}, {"INPUT": [3]}], [{"INPUT": [10]}, {"INPUT": [20]}]]},
}


def write_data(folder):
    """Writes every data file; {name without ending: path}."""
    for name, value in DATA.items():
        (folder / name).write_text(json.dumps(value))
    (folder / "broken.json").write_text('{"data": [{"INPUT0": [1,2,}]}')
    (folder / "intervals.txt").write_text("10000\n20000\n5000\n")
    pair = {name: b"".join(v.to_bytes(4, "little") for v in values) for name, values in PAIR.items()}
    for kind, files in {
        "raw": pair, "raw_partly": {"INPUT0": pair["INPUT0"]}, "raw_words": {"INPUT0": b"hello world\n"},
        "raw_short": {name: raw[:12] for name, raw in pair.items()},
    }.items():
        (folder / kind).mkdir()
        for name, raw in files.items():
            (folder / kind / name).write_bytes(raw)
    return {path.stem: path for path in folder.iterdir()}


@dataclass
class Case:
    name: str
    line: str
    # The server that the real tool reports about.
    target: str = "triton"
    csv: bool = False
    profile: bool = False
    # Every message is written to the report, and by the real tool's HTTP library to standard error: not compared.
    trace: bool = False
    # The rate cannot be kept, so the lines that say so must be there.
    delayed: bool = False
    # Words that hold blanks and so cannot stand in the line.
    more: list = field(default_factory=list)

    def __str__(self):
        return f"{self.name}_on_{self.target}" if self.target != "triton" else self.name


def measured(name, line, **more):
    return Case(name, f"{line} {SHORT}", **more)


REPEAT = "-m repeat -i grpc -a --streaming --input-data {repeat}"

MODES = [
    measured("default", "-m simple"),
    measured("range", "-m simple --concurrency-range 1:3", csv=True, profile=True),
    measured("verbose", "-m simple -v --concurrency-range 1:2"),
    measured("extra_verbose", "-m simple -v -v", trace=True),
    measured("percentile", "-m simple --percentile=95"),
    measured("percentile_verbose_async", "-m simple --percentile=95 -v --async"),
    measured("percentile_csv", "-m simple --percentile=75", csv=True),
    measured("grpc", "-m simple -i grpc"),
    measured("grpc_range_verbose_csv", "-m simple -i grpc --concurrency-range 1:3 --verbose-csv", csv=True, profile=True),
    measured("grpc_verbose_async", "-m simple -i grpc -v -a --concurrency-range 2"),
    measured("grpc_steps", "-m simple -i grpc -v -a --percentile=95 --concurrency-range 1:4:3"),
    measured("grpc_streaming", "-m simple -i grpc --streaming -a"),
    measured("batch", "-m simple -b 4", csv=True),
    measured("batch_too_large", "-m simple -b 9"),
    measured("rate", "-m simple --request-rate-range 100"),
    measured("rate_poisson", "-m simple --request-rate-range 50:150:50 --request-distribution poisson", csv=True, profile=True),
    measured("rate_async_p99", "-m simple -i grpc --request-rate-range 100:200:100 -v --percentile=99 -a"),
    measured("rate_too_high", "-m slow --request-rate-range 1000", delayed=True),
    measured("intervals", "-m simple --request-intervals {intervals}", csv=True, profile=True),
    measured("intervals_verbose", "-m simple --request-intervals {intervals} -v -a --percentile=95"),
    Case("count", "-m simple --request-count 50", csv=True, profile=True),
    Case("count_grpc_verbose", "-m simple -i grpc --request-count 50 -v --concurrency-range 4"),
    Case("count_warmup", "-m simple --request-count 50 --warmup-request-count 10"),
    Case("count_windows", "-m simple -s 1000000 -r 3 --measurement-mode count_windows"),
    Case("count_windows_verbose", "-m simple -s 1000000 -r 3 --measurement-mode count_windows --measurement-request-count 70 -v"),
    measured("binary_search", "-m simple --binary-search --concurrency-range 1:8:2 -l 1000"),
    measured("binary_search_fails", "-m slow --binary-search --concurrency-range 4:8:2 -l 5"),
    measured("binary_search_rate", "-m slow --binary-search --request-rate-range 30:300:100 -l 40 -v"),
    # A request takes 20 ms at a concurrency of 1 and 100 ms at 5: far from the limit on both sides.
    measured("limit", "-m slow --concurrency-range 1:5:4 -l 60", csv=True),
    measured("limit_percentile_verbose", "-m slow --concurrency-range 1:5:4 -l 60 --percentile=95 -v"),
    measured("limit_open_end", "-m slow --concurrency-range 1:0:4 -l 60"),
    Case("unstable", "-m simple -p 120 -s 0.0001 -r 3"),
    Case("unstable_range", "-m simple -p 120 -s 0.0001 -r 3 -v --percentile=95 --concurrency-range 1:2"),
    Case("unstable_async", "-m simple -p 120 -s 0.0001 -r 3 -a -v"),
    measured("decoupled", REPEAT, csv=True, profile=True),
    measured("decoupled_verbose", f"{REPEAT} -v --percentile=95 --concurrency-range 1:2"),
    measured("decoupled_verbose_csv", f"{REPEAT} --verbose-csv", csv=True),
    measured("decoupled_rate", f"{REPEAT} --request-rate-range 20"),
    Case("decoupled_count", f"{REPEAT} --request-count 20", profile=True),
    Case("periodic", "-m repeat -i grpc -a --streaming --input-data {repeat10} --periodic-concurrency-range 2:6:2 --request-period 10", profile=True),
    Case("periodic_parameter", "-m repeat -i grpc -a --streaming --input-data {repeat10} --periodic-concurrency-range 1:3:1 --request-period 5 --request-parameter max_tokens:256:int -v", profile=True),
    *(measured(f"sequences_{kind}", f"-m sequence_{kind} --sequence-length 5 -v", profile=True, csv=True) for kind in ("direct", "oldest")),
    measured("sequences_sync", "-m sequence_direct --sequence-length 5 --sync --concurrency-range 1:2"),
    measured("sequences_streaming", "-m sequence_oldest --sequence-length 5 -i grpc -a --streaming --concurrency-range 2"),
    measured("sequences_rate", "-m sequence_direct --sequence-length 5 --request-rate-range 50 --num-of-sequences 3", profile=True),
    measured("sequences_serial", "-m sequence_oldest -i grpc --sequence-length 5 --request-rate-range 50 --num-of-sequences 2 --serial-sequences -v"),
    Case("sequences_count", "-m sequence_direct --sequence-length 5 --request-count 40 --concurrency-range 2", profile=True),
    measured("sequences_ids", "-m sequence_direct --sequence-length 5 --sequence-id-range 100:110 --concurrency-range 2", profile=True),
    measured("sequences_data", "-m sequence_direct --input-data {steps} --concurrency-range 2", profile=True),
    measured("sequences_data_length", "-m sequence_direct --input-data {steps} --sequence-length 10", profile=True),
    measured("shared_memory", "-m simple --shared-memory system"),
    measured("shared_memory_grpc", "-m simple -i grpc --shared-memory system -v -b 2 --concurrency-range 2"),
    measured("shared_memory_bytes", "-m bytes --shared-memory system --output-shared-memory-size 1024"),
    measured("zero", "-m simple --input-data zero", profile=True),
    measured("directory", "-m simple --input-data {raw}", profile=True),
    measured("directory_strings", "-m bytes --input-data {raw_words}", profile=True),
    measured("json_flat", "-m simple --input-data {flat}"),
    measured("json_many", "-m simple --input-data {many} -v", profile=True),
    measured("json_batch", "-m simple --input-data {three} -b 2", profile=True),
    measured("json_content", "-m simple --input-data {content}"),
    measured("json_content_no_shape", "-m simple --input-data {content_no_shape}"),
    measured("json_b64", "-m simple --input-data {b64}"),
    measured("json_content_b64", "-m simple --input-data {content_b64}"),
    measured("json_streams", "-m simple --input-data {streams}", profile=True),
    measured("json_right", "-m simple --input-data {right}"),
    measured("json_right_grpc", "-m simple -i grpc --input-data {right_partly}"),
    measured("json_shapes", "-m dynamic --input-data {shapes}", profile=True),
    measured("json_option_shape", "-m dynamic --input-data {rows} --shape INPUT0:3"),
    measured("json_words", "-m bytes --input-data {words}", profile=True),
    measured("json_words_b64", "-m bytes --input-data {words_b64}"),
    measured("json_words_right", "-m bytes --input-data {words_right}"),
    measured("json_two_files", "-m simple --input-data {flat} --input-data {many}"),
    measured("json_rate", "-m simple --input-data {many} --request-rate-range 50", profile=True),
    measured("tensors_json", "-m simple --input-tensor-format json --output-tensor-format json"),
    measured("tensors_json_strings", "-m bytes --input-tensor-format json --string-data abc"),
    measured("shape", "-m dynamic --shape INPUT0:8 -b 2", profile=True),
    measured("string_data", "-m bytes", more=["--string-data", "hello world"], profile=True),
    measured("string_length", "-m bytes --string-length 5", profile=True),
    measured("string_shape", "-m bytes_any --shape INPUT0:3 --string-data x", profile=True),
    measured("ensemble", "-m outer -v --concurrency-range 1:2", csv=True),
    measured("ensemble_grpc", "-m outer -i grpc --percentile=95 --verbose-csv", csv=True),
    measured("ensemble_batch", "-m inner -b 4"),
    measured("bls", "-m bls"),
    measured("bls_composing", "-m bls --bls-composing-models simple -v", csv=True),
    measured("cached", "-m cached -v", csv=True),
    measured("cached_grpc", "-m cached -i grpc --percentile 95 --verbose-csv", csv=True),
    measured("metrics", "-m simple --collect-metrics --verbose-csv --metrics-url {metrics}/metrics --metrics-interval 100", csv=True),
    measured("header", "-m simple -H X-Test:1 -H Other:two"),
    measured("compressed", "-m simple -i grpc --grpc-compression-algorithm gzip"),
    measured("parameters", "-m simple -i grpc --request-parameter a:256:int --request-parameter b:true:bool --request-parameter c:x:string"),
    # The same on our server.
    measured("default", "-m simple", target="galatea"),
    measured("grpc", "-m simple -i grpc -v -a --percentile=90 --concurrency-range 1:2", target="galatea", csv=True, profile=True),
    measured("rate", "-m simple --request-rate-range 100", target="galatea"),
    measured("decoupled", REPEAT, target="galatea", csv=True, profile=True),
    measured("ensemble", "-m outer -v", target="galatea", csv=True),
    measured("bls_composing", "-m bls --bls-composing-models simple -v", target="galatea"),
    measured("batch", "-m simple -b 4 --input-data {three}", target="galatea"),
    measured("strings", "-m bytes --input-tensor-format json --output-tensor-format json", target="galatea"),
]

FAILURES = [
    measured("no_model", "-m nope"),
    measured("no_model_grpc", "-m nope -i grpc"),
    measured("no_version", "-m simple -x 9"),
    measured("no_server", "-m simple -u localhost:1"),
    measured("no_server_grpc", "-m simple -i grpc -u localhost:1"),
    measured("failing", "-m failing --shape INPUT0:4"),
    measured("failing_grpc_async", "-m failing -i grpc -a --shape INPUT0:4 --concurrency-range 2"),
    measured("failing_rate", "-m failing --shape INPUT0:4 --request-rate-range 20"),
    measured("failing_streaming", "-m failing -i grpc -a --streaming --shape INPUT0:4"),
    Case("failing_count", "-m failing --shape INPUT0:4 --request-count 5"),
    measured("failing", "-m failing --shape INPUT0:4", target="galatea"),
    measured("no_model", "-m nope", target="galatea"),
    measured("no_model_grpc", "-m nope -i grpc", target="galatea"),
    measured("validation_wrong", "-m simple --input-data {wrong}"),
    measured("validation_wrong_async", "-m simple -i grpc -a --input-data {wrong}"),
    *(measured(f"data_{name}", f"-m simple --input-data {{{name}}}") for name in (
        "validation_size", "validation_length", "short", "missing", "unknown", "no_data", "empty", "texts", "fractions",
        "one_text", "nested", "wrong_shape", "batched_shape", "negative_shape", "bad_b64", "short_b64", "broken",
        "raw_partly", "raw_short")),
    measured("data_shapes_in_batch", "-m dynamic --input-data {shapes} -b 2"),
    measured("data_no_such_file", "-m simple --input-data nowhere.json"),
    measured("data_flat_dynamic", "-m dynamic --input-data {rows}"),
    measured("unknown_shape", "-m dynamic"),
    measured("unknown_shape_strings", "-m bytes_any"),
    measured("shape_of_other_input", "-m dynamic --shape NOPE:8"),
    measured("shape_without_colon", "-m dynamic --shape INPUT0"),
    measured("shape_text", "-m dynamic --shape INPUT0:a"),
    measured("shape_negative", "-m dynamic --shape INPUT0:-1"),
    measured("bls_composing_not_there", "-m bls --bls-composing-models nope"),
    measured("decoupled_over_http", "-m repeat --input-data {repeat}"),
    measured("decoupled_not_streaming", "-m repeat -i grpc -a --input-data {repeat}"),
    measured("periodic_without_export", "-m repeat -i grpc -a --streaming --input-data {repeat} --periodic-concurrency-range 2:6:2"),
    measured("sequence_batch", "-m sequence_direct -b 2"),
    measured("sequence_open_end", "-m sequence_direct --concurrency-range 1:0:1 -l 50"),
    measured("sequence_ids_too_few", "-m sequence_direct --sequence-id-range 100:102 --concurrency-range 4"),
    Case("count_less_than_concurrency", "-m simple --request-count 2 --concurrency-range 4"),
    Case("count_with_range", "-m simple --request-count 50 --concurrency-range 1:3"),
]

# Deprecated and odd spellings that the real tool takes.
MODES += [
    measured("old_zero", "-m simple -z"),
    measured("old_search", "-m simple -d -c 3 -l 1000"),
    measured("old_concurrency", "-m simple -t 2"),
    measured("old_directory", "-m simple --data-directory {raw}"),
    measured("extra_word", "-m simple nonsense"),
    measured("abbreviated", "-m simple --concurrency 2"),
    measured("abbreviated_verbose", "-m simple --verbose"),
]

# The cases that run in the tier commit, where ours is compared with what is recorded: one for each way in which a
# report differs from others. The tier peers runs them all.
IN_COMMIT = {
    "default", "range", "extra_verbose", "percentile_verbose_async", "grpc_range_verbose_csv", "grpc_streaming", "batch",
    "rate_poisson", "rate_too_high", "intervals", "count", "count_grpc_verbose", "binary_search", "limit", "unstable_range",
    "decoupled", "decoupled_verbose_csv", "periodic", "sequences_direct", "sequences_rate", "sequences_ids", "sequences_data",
    "zero", "directory", "json_many", "json_batch", "json_b64", "json_streams", "json_right",
    "json_shapes", "json_words", "tensors_json", "shape", "string_data", "ensemble", "bls_composing", "cached", "metrics", "header",
    "parameters", "old_search", "extra_word", "abbreviated",
}

# Where ours differs on purpose; see test_perf.py for what it does instead.
OTHERWISE = {
    "underscore": "accepted: one of the seed documents writes it so",
    "kind": "only Triton's own protocol is spoken, and the choices named are ours",
    "kind_tfs": "refused by name",
    "openai": "refused by name",
    "capi": "refused by name",
    "fixed": "refused by name, as not supported",
    "session": "refused by name, as not supported",
    "parameter_type": "both refuse; ours looks at the type before the protocol",
    "conc_step0": "a step of 0 is refused at once",
    "percentile_text": "text where a number belongs is told as such",
    "trace_rate": "a negative rate is refused at once",
    "ssl_bool": "`maybe` is not a bool",
    "data_nested": "lists in lists are flattened, not refused",
    "data_empty": "told before the load begins",
    "data_bad_b64": "told as what it is, not as a wrong size",
}

# Wrong options: refused before anything is sent, or else there is no server behind them.
OPTIONS = [
    Case("no_m", ""),
    Case("unknown", "--nope -m simple"),
    Case("underscore", "-m simple --concurrency_range 1:2"),
    Case("neg_conc", "-m simple --concurrency-range 0"),
    Case("conc_text", "-m simple --concurrency-range a"),
    Case("conc4", "-m simple --concurrency-range 1:2:3:4"),
    Case("conc_step0", "-m simple --concurrency-range 1:2:0"),
    Case("both_ranges", "-m simple --concurrency-range 1 --request-rate-range 1"),
    Case("rate_intervals", "-m simple --request-rate-range 1 --request-intervals {intervals}"),
    Case("bad_rate", "-m simple --request-rate-range x"),
    Case("rate0", "-m simple --request-rate-range 0"),
    Case("protocol", "-m simple -i tcp"),
    Case("streaming_http", "-m simple --streaming"),
    Case("async_sync", "-m simple -a --sync"),
    Case("percentile0", "-m simple --percentile 0"),
    Case("percentile100", "-m simple --percentile 100"),
    Case("percentile_text", "-m simple --percentile x"),
    Case("b0", "-m simple -b 0"),
    Case("b_text", "-m simple -b x"),
    Case("p0", "-m simple -p 0"),
    Case("p_text", "-m simple -p x"),
    Case("mode", "-m simple --measurement-mode x"),
    Case("mrc0", "-m simple --measurement-request-count 0"),
    Case("s0", "-m simple -s 0"),
    Case("s_text", "-m simple -s x"),
    Case("r0", "-m simple -r 0"),
    Case("distribution", "-m simple --request-distribution x"),
    Case("binary_no_end", "-m simple --binary-search -l 10"),
    Case("binary_no_l", "-m simple --binary-search --concurrency-range 1:4"),
    Case("end0_no_l", "-m simple --concurrency-range 1:0"),
    Case("shm_bad", "-m simple --shared-memory x"),
    Case("format_bad", "-m simple --input-tensor-format x"),
    Case("kind", "-m simple --service-kind x"),
    Case("kind_tfs", "-m simple --service-kind tfserving"),
    Case("compression", "-m simple -i grpc --grpc-compression-algorithm x"),
    Case("compression_http", "-m simple --grpc-compression-algorithm gzip"),
    Case("parameter_bad", "-m simple --request-parameter a"),
    Case("parameter_type", "-m simple --request-parameter a:b:c"),
    Case("collect_no_f", "-m simple --collect-metrics"),
    Case("collect_no_verbose", "-m simple --collect-metrics -f x.csv"),
    Case("metrics_no_collect", "-m simple --metrics-url x"),
    Case("interval0", "-m simple --collect-metrics -f x --verbose-csv --metrics-interval 0"),
    Case("verbose_csv_no_f", "-m simple --verbose-csv"),
    Case("export_no_name", "-m simple --profile-export-file"),
    Case("threads0", "-m simple --max-threads 0"),
    Case("l_text", "-m simple -l x"),
    Case("l_neg", "-m simple -l -5"),
    Case("numseq0", "-m simple --num-of-sequences 0"),
    Case("seqlen0", "-m simple --sequence-length 0"),
    Case("seqvar", "-m simple --sequence-length-variation 200"),
    Case("seqid", "-m simple --sequence-id-range 0:5"),
    Case("seqid2", "-m simple --sequence-id-range 5:2"),
    Case("seqid3", "-m simple --sequence-id-range 1:2:3"),
    Case("strlen0", "-m simple --string-length 0"),
    Case("count_neg", "-m simple --request-count -1"),
    Case("count_text", "-m simple --request-count x"),
    Case("period0", "-m simple --request-period 0"),
    Case("periodic_only", "-m simple --periodic-concurrency-range 1:4"),
    Case("trace_level", "-m simple --trace-level X"),
    Case("trace_rate", "-m simple --trace-rate -1"),
    Case("d", "-m simple -d"),
    Case("c", "-m simple -c 4"),
    Case("t", "-m simple -t 4"),
    Case("outshm0", "-m simple --output-shared-memory-size 0"),
    Case("missing_value", "-m"),
    Case("openai", "-m simple --service-kind openai"),
    Case("capi", "-m simple --service-kind triton_c_api"),
    Case("ssl_bool", "-m simple -i grpc --ssl-grpc-use-ssl maybe"),
    Case("ssl_peer", "-m simple --ssl-https-verify-peer 5"),
    Case("ssl_type", "-m simple --ssl-https-client-certificate-type X"),
    Case("logfreq", "-m simple --log-frequency -1"),
    Case("periodic_http", "-m simple --periodic-concurrency-range 1:4 --profile-export-file x.json"),
    Case("dyn_rate_binary", "-m simple --binary-search --request-rate-range 10:20 --request-intervals x"),
    Case("warmup", "-m simple --warmup-request-count 5"),
    Case("fixed", "-m simple --fixed-schedule"),
    Case("session", "-m simple --session-concurrency 2"),
]
