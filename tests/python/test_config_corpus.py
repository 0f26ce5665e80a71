"""Our config.pbtxt parser against Python protobuf's text_format, on generated documents.

Both parse the same documents with the same descriptors; they must accept and reject the same ones and read
the same values. The corpus is made from a fixed seed: random configurations in random spellings, the same
with random damage, and every scalar field kind with every literal that is easy to get wrong. Our JSON form is
compared with protobuf's json_format along the way. What differs on purpose is listed in DELIBERATE.

The Rust side is the example `parse_corpus` of galatea-config: GALATEA_PARSE_CORPUS names the built program,
else cargo builds it.
"""

import json
import math
import os
import random
import subprocess
import warnings
from pathlib import Path

import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, json_format, message_factory, text_format

ROOT = Path(__file__).resolve().parents[2]
DESCRIPTORS = ROOT / "crates/shared/proto/src" / "generated" / "descriptors.bin"
SEED = 20251121
RANDOM_DOCUMENTS = 2500

# Accepted by text_format, refused by us: document -> why.
DELIBERATE = {
    r'name: "\N{DIGIT ONE}"': "a Python escape; the C++ parser refuses it as well",
    "max_batch_size: \u0661": "a digit of another script, which Python's int() takes; the C++ parser refuses it as well",
    "#" * (4 * 1024 * 1024 + 1): "longer than any configuration",
}

# Refused by text_format, accepted by us: document -> why.
LENIENT = {"\ufeffname: 'a'": "editors write a byte order mark, and it says nothing"}


def load_message_class():
    files = descriptor_pb2.FileDescriptorSet.FromString(DESCRIPTORS.read_bytes())
    pool = descriptor_pool.DescriptorPool()
    for file in files.file:
        pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("inference.ModelConfig"))


ModelConfig = load_message_class()
FIELD = type(ModelConfig.DESCRIPTOR.fields[0])

INTEGERS = """0 1 -1 7 00 017 -017 +017 08 0x1F 0X1f -0x2 0x_1f 0x 0xg 0o17 0b101 1_000 1__0 1_ _1 0_0 0_7 +5 -0 1.0
1e3 1f inf true "5" -2147483648 2147483647 2147483648 -2147483649 4294967295 4294967296 9223372036854775807
9223372036854775808 -9223372036854775808 -9223372036854775809 18446744073709551615 18446744073709551616
99999999999999999999999999999999999999999999 + - ++1 --1 1-2 1+2 é 0é [1] {} TYPE_FP32 KIND_CPU 01 0x1 99""".split()
FLOATS = """0 1 -1.5 .5 5. 1e3 1E+3 1e-3 1.5f 1.5F 1fff inf -inf Infinity -infinity inff -inff +inff infff infinityf
+inf nan NaN -nan nanf -nanf 01 00.5 +01 0.5 -0.5 1_0.5 1_.5 1._5 1e_5 1e1_0 f . - 1e e5 0x1 0x1f "1" true 1e400
1e39 -1e39 3.4e38 1e-50 0.1 123456789.123456789 1..2 1.2.3 1e5.0 é""".split()
BOOLS = "true false t f 1 0 True False TRUE yes 2 -1 01 00 0x1 \"true\" tru [true]".split()
STRINGS = [
    '""', "''", '"a"', "'a'", "\"a\" 'b'", '"a""b"\n"c"', '"a" # c\n "b"', '"it\'s"', "'\"'", '"é日😀"', "a", "1", "true",
    '"open', "'open", '"a\nb"', '"a\\', '"a\\"', '"\\\\"', '"\\n\\t\\r\\a\\b\\f\\v\\\'\\""', '"\\101\\60\\0\\7777"',
    '"\\377"', '"\\303\\251"', '"\\400"', '"\\x41\\x4z\\x4"', '"\\x"', '"\\xg"', '"\\xc3\\xa9"', '"\\xff"', '"\\X41"',
    '"\\u00e9\\U0001F600"', '"\\u12"', '"\\ud800"', '"\\ud83d\\ude00"', '"\\U00110000"', '"\\\\u0041"',
    '"\\\\\\u0041"', '"\\u005cn"', '"\\u005cx41"', '"\\u005cu0041"', '"\\u000a"', '"\\q"', '"\\é"', '"\\日"', '"\\😀"', '"\\\\日"',
    '"\\?"', '"\\8"', '"\\0x"', '"\t"', '"\x00"', '"\x7f"', '"a"1', '"a"b: 1', "\"a',", "'a\"", "\"a' \"b\"", '"\\x4é"', '"\\\\x4"', '"\\\\\\x4"',
]
WHOLE = [
    "", " ", "\n", "#", "# only", "name", "name:", ":", "name: 'a',", "name: 'a';", "name: 'a',,", "name: 'a',;", ",", ";",
    "name 'a'", "name = 'a'", "name: 'a' name: 'b'", "name: '' name: 'b'", "name: 'b' name: ''", "max_batch_size: 0 max_batch_size: 1",
    "max_batch_size: 1 max_batch_size: 0", "max_batch_size: 1 max_batch_size: 1", "max_batch_size [1]", "max_batch_size: [1]",
    "input", "input {", "input }", "input {}", "input: {}", "input :{}", "input <>", "input: <>", "input {>", "input <}", "input []",
    "input: []", "input [{}]", "input [{},{}]", "input [{} {}]", "input [{},]", "input [,{}]", "input [{};{}]", "input [<>, {}]",
    "input [[{}]]", "input [{}", "input [{},", "input [{}}", "input {]", "input { , }", "input { ; }", "input {},{}", "input {};;",
    "input { dims: 1 dims: 2 }", "input { dims: [1] dims: 2 dims: [] dims: [3, 4] }", "input { dims: [] }", "input { dims: [,] }",
    "input { dims: [1,] }", "input { dims: [1 2] }", "input { dims: [1;2] }", "input { dims [1] }", "input { dims: [[1]] }",
    "input { dims: {} }", "input { dims: [1, 'a'] }", "input { dims: 1, 2 }", "input { dims: [1,-1]; }", "input { dims: - 1 }",
    "response_cache [{}]", "response_cache {} response_cache {}", "response_cache: true", "response_cache { enable: true enable: true }",
    "response_cache { enable: false enable: true }", "response_cache { enable: true } response_cache {}",
    "version_policy { all {} latest {} }", "version_policy { all {} all {} }", "version_policy { latest { num_versions: 2 } }",
    "dynamic_batching {} sequence_batching {}", "dynamic_batching {} dynamic_batching {}",
    "model_warmup { inputs { key: 'a' value { zero_data: true random_data: true } } }",
    "model_warmup { inputs { key: 'a' value { zero_data: false zero_data: true } } }",
    "model_warmup { inputs { key: 'a' value { zero_data: false } } }",
    "model_warmup { inputs { key: 'a' value { input_data_file: '' random_data: false } } }",
    "metric_tags { key: 'a' value: 'b' }", "metric_tags { key: 'a' key: 'b' }", "metric_tags { key: '' key: 'b' }", "metric_tags {}",
    "metric_tags { value: 'a' value: 'b' }", "metric_tags [{key: 'a'}, {key: 'a' value: '2'}]", "metric_tags { other: 1 }", "metric_tags: { key: 'a' }",
    "metric_tags { key: 1 }", "metric_tags < key: 'a' >", "metric_tags []", "metric_tags { key: 'a' }, metric_tags { key: 'b' };",
    "parameters { key: 'a' value {} value {} }", "parameters { key: 'a' }", "parameters { key: 'a' value { string_value: 'x' } } parameters { key: 'a' value {} }",
    "parameters { key: 'a' value: 'x' }", "parameters { key: 'a' value: { string_value: 'x' } }",
    "dynamic_batching { priority_queue_policy { key: 1 value { max_queue_size: 1 } } priority_queue_policy { key: 1 } }",
    "dynamic_batching { priority_queue_policy { key: -1 } }",
    "[inference.x]: 1", "[a]", "[type.googleapis.com/inference.ModelInput] {}", "input { [a.b] {} }", "1: 'a'", "input { 4: 1 }", "Name: 'a'",
    "ModelInput {}", "name-x: 1", "name+: 1", "name\x00: 'a'", "\ufeffname: 'a'", "name: 'a'\ufeff", "\u00a0name:\u2003'a'\u2028", "name\x1c:\x1f'a'",
    "name\u200b: 'a'", "name: 'a' /* no */", "name: 'a' // no", "{ name: 'a' }", "name: 'a' }", "name: 'a' ]", "name: 'a' >", "name: 'a'\r\nmax_batch_size: 1\r",
    "name: 'a'#x\nbackend:'b'", "name#x\n:#y\n'a'", "name: 'a'\x0bbackend: 'b'", "instance_group { kind: KIND_CPU kind: KIND_GPU }", "instance_group { kind: KIND_AUTO kind: KIND_GPU }",
    "instance_group { kind: 0 kind: 1 }", "instance_group { kind: 7 }", "instance_group { kind: 2147483648 }", "instance_group { kind: -1 }", "instance_group { kind: [KIND_CPU] }",
    "sequence_batching { direct { minimum_slot_utilization: 0.0 minimum_slot_utilization: 0.5 } }", "sequence_batching { direct {} oldest {} }",
    "sequence_batching { control_input { control { fp32_false_true: [0, 1] bool_false_true: [false, t] int32_false_true: 0 } } }",
    "sequence_batching { control_input { control { fp32_false_true: [0, 1f, -.5e3, nan, inf] } } }",
]


def literals_for(field):
    kind = field.cpp_type
    if kind in (FIELD.CPPTYPE_FLOAT, FIELD.CPPTYPE_DOUBLE):
        return FLOATS
    if kind == FIELD.CPPTYPE_BOOL:
        return BOOLS
    if kind == FIELD.CPPTYPE_STRING:
        return STRINGS
    if kind == FIELD.CPPTYPE_ENUM:
        return INTEGERS + [v.name for v in field.enum_type.values] + ["type_fp32", '"KIND_CPU"', "NOPE"]
    return INTEGERS


# One field of every scalar kind, with what surrounds it.
SCALAR_FIELDS = [
    ("", "max_batch_size", ""),
    ("input { ", "dims", " }"),
    ("input { ", "data_type", " }"),
    ("instance_group { ", "kind", " }"),
    ("optimization { ", "gather_kernel_buffer_threshold", " }"),
    ("dynamic_batching { ", "max_queue_delay_microseconds", " }"),
    ("sequence_batching { direct { ", "minimum_slot_utilization", " } }"),
    ("sequence_batching { control_input { control { ", "fp32_false_true", " } } }"),
    ("model_metrics { metric_control { histogram_options { ", "buckets", " } } }"),
    ("response_cache { ", "enable", " }"),
    ("", "name", ""),
    ("metric_tags { ", "key", " }"),
]


def find_field(name, message=ModelConfig.DESCRIPTOR):
    for field in message.fields:
        if field.name == name:
            return field
        found = field.message_type and find_field(name, field.message_type)
        if found:
            return found
    return None


def literal_documents():
    for before, name, after in SCALAR_FIELDS:
        field = find_field(name)
        for literal in literals_for(field):
            yield f"{before}{name}: {literal}{after}"
            yield f"{before}{name}:{literal}\n{after}"
            yield f"{before}{name}: [{literal}, {literal}]{after}"


class Writer:
    """Random messages in random spellings."""

    def __init__(self, rng):
        self.rng = rng

    def space(self):
        return self.rng.choice(["", " ", " ", " ", "\n", "\t", "  ", " # note {[\"\n", "\r\n", "\n\n"])

    def gap(self):
        return self.space() or " "

    def scalar(self, field):
        rng = self.rng
        kind = field.cpp_type
        if rng.random() < 0.03:
            return rng.choice(literals_for(field))
        if kind == FIELD.CPPTYPE_STRING:
            return self.string()
        if kind == FIELD.CPPTYPE_BOOL:
            return rng.choice(["true", "false", "t", "f", "1", "0", "True", "False"])
        if kind == FIELD.CPPTYPE_ENUM:
            value = rng.choice(field.enum_type.values)
            return rng.choice([value.name, value.name, str(value.number), hex(value.number)])
        if kind in (FIELD.CPPTYPE_FLOAT, FIELD.CPPTYPE_DOUBLE):
            value = rng.choice([rng.random(), rng.uniform(-1e6, 1e6), rng.randint(-5, 5), 10.0 ** rng.randint(-30, 30)])
            return rng.choice([repr(value), f"{value:g}", f"{value:.3f}f", f"{value:e}"])
        signed = kind in (FIELD.CPPTYPE_INT32, FIELD.CPPTYPE_INT64)
        bits = 31 if kind in (FIELD.CPPTYPE_INT32, FIELD.CPPTYPE_UINT32) else 63
        value = rng.choice([rng.randint(0, 9), rng.randint(0, 1000), rng.getrandbits(bits)])
        value = -value if signed and rng.random() < 0.3 else value
        return rng.choice([str, str, str, hex, oct])(value)

    def string(self):
        rng = self.rng
        pieces = [rng.choice(["x", "INPUT__0", "a b", "é", "日本", "\\n", "\\x41", "\\101", "\\u00e9", "#", "\\\\", "1"]) for _ in range(rng.randint(0, 4))]
        quotes = [rng.choice("\"'") for _ in range(rng.choice([1, 1, 1, 2, 3]))]
        return self.space().join(q + "".join(pieces) + q for q in quotes)

    def value(self, field, depth):
        if field.message_type is None:
            return self.scalar(field)
        opening, closing = self.rng.choice([("{", "}"), ("{", "}"), ("<", ">")])
        return opening + self.message(field.message_type, depth + 1) + self.space() + closing

    def field(self, field, depth):
        rng = self.rng
        needs_colon = field.message_type is None
        colon = self.space() + ":" if needs_colon or rng.random() < 0.3 else ""
        if field.is_repeated and rng.random() < 0.5:
            values = [self.value(field, depth) for _ in range(rng.randint(0, 3))]
            text = "[" + self.space() + (self.space() + "," + self.space()).join(values) + self.space() + "]"
        else:
            text = self.value(field, depth)
        return field.name + colon + self.space() + text + rng.choice(["", "", "", ",", ";", " ,"])

    def message(self, descriptor, depth=0):
        rng = self.rng
        fields = list(descriptor.fields)
        count = min(len(fields), rng.choice([0, 1, 2, 3, 4] if depth else [1, 2, 4, 8]))
        chosen = rng.sample(fields, count)
        chosen += [f for f in chosen if f.is_repeated and rng.random() < 0.4]
        if rng.random() < 0.05 and chosen:
            chosen.append(rng.choice(chosen))
        return "".join(self.gap() + self.field(field, depth) for field in chosen)


def damage(rng, text):
    """One random edit."""
    if not text:
        return rng.choice("{}[]<>:,;'\"#")
    at = rng.randrange(len(text))
    kind = rng.randrange(6)
    if kind == 0:
        return text[:at] + text[at + 1 :]
    if kind == 1:
        return text[:at] + rng.choice("{}[]<>:,;'\"#\\ \n-+.0aé") + text[at:]
    if kind == 2:
        return text[:at]
    if kind == 3:
        end = min(len(text), at + rng.randint(1, 12))
        return text[:at] + text[end:]
    if kind == 4:
        end = min(len(text), at + rng.randint(1, 12))
        return text[:end] + text[at:end] + text[end:]
    return text[:at] + rng.choice("{}[]<>:,;'\"") + text[at + 1 :]


def documents():
    rng = random.Random(SEED)
    writer = Writer(rng)
    yield from WHOLE
    yield from literal_documents()
    for _ in range(RANDOM_DOCUMENTS):
        text = writer.message(ModelConfig.DESCRIPTOR)
        yield text
        yield damage(rng, text)


def parse_by_protobuf(text):
    """The message, or None when text_format refuses the document."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return text_format.Parse(text, ModelConfig())
    except (text_format.ParseError, ValueError, OverflowError):
        return None


def program():
    built = os.environ.get("GALATEA_PARSE_CORPUS")
    if built:
        return [built]
    subprocess.run(["cargo", "build", "-q", "-p", "galatea-config", "--example", "parse_corpus"], cwd=ROOT, check=True)
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    return [str(target / "debug" / "examples" / "parse_corpus")]


def parse_by_galatea(requests):
    lines = "".join(json.dumps(r) + "\n" for r in requests)
    done = subprocess.run(program(), input=lines.encode(), stdout=subprocess.PIPE, check=True)
    answers = [json.loads(line) for line in done.stdout.decode().splitlines()]
    assert len(answers) == len(requests)
    return answers


def canonical(message):
    # Neither encoder tells -0.0 from 0.0 in a field without presence in the same way.
    direct = message.sequence_batching.direct if message.HasField("sequence_batching") else None
    if direct and direct.minimum_slot_utilization == 0 and message.sequence_batching.HasField("direct"):
        direct.minimum_slot_utilization = math.copysign(0.0, 1.0)
    return message.SerializeToString(deterministic=True)


def alike(ours, theirs):
    """Equal through JSON, which has one NaN and whose readers may be off by the last bit of a float."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        return ours.keys() == theirs.keys() and all(alike(ours[k], theirs[k]) for k in ours)
    if isinstance(ours, list) and isinstance(theirs, list):
        return len(ours) == len(theirs) and all(map(alike, ours, theirs))
    if isinstance(ours, float) and isinstance(theirs, float):
        return math.isclose(ours, theirs, rel_tol=1e-12)
    return ours == theirs


def check_alike(ours, theirs, document):
    ours, theirs = json_format.MessageToDict(ours), json_format.MessageToDict(theirs)
    assert alike(ours, theirs), (document, ours, theirs)


@pytest.fixture(scope="module")
def corpus():
    texts = list(dict.fromkeys(documents()))
    return list(zip(texts, parse_by_galatea([{"text": t} for t in texts]), strict=True))


def report(wrong):
    shown = "\n".join(f"{text!r}\n    protobuf: {theirs}\n    galatea:  {ours}" for text, theirs, ours in wrong[:10])
    return f"{len(wrong)} documents differ:\n{shown}"


def test_configurations_are_accepted_and_refused_like_protobuf(corpus):
    wrong, accepted = [], 0
    for text, answer in corpus:
        message = parse_by_protobuf(text)
        if message is None:
            if "error" not in answer and text not in LENIENT:
                wrong.append((text, "refused", answer["json"]))
        elif "error" in answer:
            wrong.append((text, text_format.MessageToString(message, as_one_line=True), answer["error"]))
        else:
            accepted += 1
            ours = ModelConfig.FromString(bytes.fromhex(answer["message"]))
            if canonical(ours) != canonical(message):
                wrong.append((text, text_format.MessageToString(message, as_one_line=True), answer["json"]))
    assert not wrong, report(wrong)
    # The corpus must stay worth something: plenty of both kinds.
    assert accepted > 2000 and len(corpus) - accepted > 1500, (accepted, len(corpus))


def test_every_refusal_names_a_place(corpus):
    for text, answer in corpus:
        if "error" in answer:
            line, column, message = answer["error"].split(":", 2)
            assert 1 <= int(line) <= text.count("\n") + 1, (text, answer)
            assert int(column) >= 1 and message.strip(), (text, answer)


def test_the_json_form_holds_the_same_message(corpus):
    for text, answer in corpus:
        if "error" not in answer:
            ours = ModelConfig.FromString(bytes.fromhex(answer["message"]))
            read = json_format.Parse(answer["json"], ModelConfig())
            check_alike(read, ours, text)


def test_json_written_by_protobuf_is_read(corpus):
    messages = [ModelConfig.FromString(bytes.fromhex(a["message"])) for _, a in corpus if "error" not in a]
    requests = []
    for index, message in enumerate(messages):
        options = {"preserving_proto_field_name": bool(index % 2), "use_integers_for_enums": index % 5 == 0}
        if index % 3 == 0:
            options["always_print_fields_with_no_presence"] = True
        requests.append({"json": json_format.MessageToJson(message, **options)})
    for message, request, answer in zip(messages, requests, parse_by_galatea(requests), strict=True):
        assert "error" not in answer, (request, answer)
        read = ModelConfig.FromString(bytes.fromhex(answer["message"]))
        check_alike(read, message, request)


def test_deliberate_differences_still_exist():
    for text, answer in zip(DELIBERATE, parse_by_galatea([{"text": t} for t in DELIBERATE]), strict=True):
        assert parse_by_protobuf(text) is not None, text[:60]
        assert "error" in answer, text[:60]
    for text, answer in zip(LENIENT, parse_by_galatea([{"text": t} for t in LENIENT]), strict=True):
        assert parse_by_protobuf(text) is None, text[:60]
        assert "error" not in answer, text[:60]
