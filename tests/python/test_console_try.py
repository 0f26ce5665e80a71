"""The console's form, in a browser with a real server behind it: what is sent, what is shown, and that the commands it prints
say the same."""

import json
import math
import struct
import wave

import numpy as np
import pytest

import browser
import clients
import console_try_models
import repositories
import servers
import tiers
from console_form import Commands, Form, kept, open_form, png, strings, utf8

pytestmark = tiers.peers


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    path = console_try_models.write(tmp_path_factory.mktemp("models"))
    with servers.galatea(path, "--model-control-mode=explicit", "--load-model=*") as running:
        yield running


@pytest.fixture(scope="module")
def page():
    with browser.open_browser() as running:
        yield running


@pytest.fixture
def form(server, page):
    """Opens the form of a model."""
    yield lambda model: open_form(page, server, model)
    assert page.take_errors() == [], "the page broke a rule of its policy, or threw"


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A picture, a sound, and files of bytes, by name."""
    folder = tmp_path_factory.mktemp("files")
    (folder / "picture.png").write_bytes(png(12, 9, lambda x, y: (x * 20, y * 28, 200)))
    with wave.open(str(folder / "sound.wav"), "wb") as sound:
        sound.setparams((2, 2, 8000, 0, "NONE", ""))
        sound.writeframes(b"".join(struct.pack("<hh", *[int(16000 * math.sin(at / 20))] * 2) for at in range(1600)))
    (folder / "odd.bin").write_bytes(bytes(15))
    (folder / "six.bin").write_bytes(np.arange(6, dtype=np.float32).tobytes())
    (folder / "seven.bin").write_bytes(np.arange(7, dtype=np.float32).tobytes())
    (folder / "no-text.bin").write_bytes(bytes(range(200, 256)))
    return folder


@pytest.fixture
def commands(tmp_path):
    return lambda form, env=None: Commands(form, tmp_path, env)


# ---- numbers


def test_numbers_are_sent_and_the_shown_commands_give_the_same_result(form, commands):
    simple = form("simple")
    simple.fill("INPUT0", "values", "[[" + ",".join(map(str, range(16))) + "]]")
    simple.fill("INPUT1", "ones")
    assert simple.send().startswith("Answer after ")
    sums = list(range(1, 17))
    assert kept(simple, "OUTPUT0") == {"name": "OUTPUT0", "datatype": "INT32", "shape": [1, 16], "data": sums}
    assert simple.view("OUTPUT0").split()[-16:] == [str(value) for value in sums]
    run = commands(simple)
    answer = json.loads(run.curl())
    assert answer["outputs"][0]["data"] == sums
    assert run.python()["OUTPUT0"] == strings(sums)
    told = run.infer()
    assert told["outputs"][0]["data"] in (sums, [sums])


def test_batch_and_free_dimensions_follow_the_data(form):
    simple = form("simple")
    for name in ("INPUT0", "INPUT1"):
        simple.fill(name, "range", From=5, Step=-1)
        simple.dimension(name, 0, 3)
    assert simple.send().startswith("Answer")
    assert kept(simple, "OUTPUT0")["shape"] == [3, 16]
    assert kept(simple, "OUTPUT0")["data"] == [2 * (5 - at) for at in range(48)]
    single = form("single")
    single.fill("INPUT0", "random", From=2, To=3)
    single.dimension("INPUT0", 0, 2000)
    assert single.send().startswith("Answer")
    assert "2000 values from 2" in single.view("OUTPUT0")
    assert "2000 elements: least 2" in single.view("OUTPUT0", "numbers")


@pytest.mark.parametrize("model, typed, shown", [
    ("half", "0.1 65504 -inf nan 1e-7", ["0.1", "65504", "-Infinity", "NaN", "1e-7"]),
    ("brain", "0.1 3 nan", ["0.1", "3", "NaN"]),
    ("single", "0.1 -0.0 inf 16777217", ["0.1", "-0.0", "Infinity", "16777216"]),
    ("long", "9007199254740993 -9223372036854775808", ["9007199254740993", "-9223372036854775808"]),
    ("unsigned", "18446744073709551615 0", ["18446744073709551615", "0"]),
    ("bools", "true,0,1", ["true", "false", "true"]),
])
def test_each_data_type_round_trips(form, commands, model, typed, shown):
    asked = form(model)
    asked.fill("INPUT0", "values", typed)
    assert asked.send().startswith("Answer"), asked.text(".try-result")
    assert asked.view("OUTPUT0", "table").split()[-len(shown):] == shown
    file = asked.kept_of("OUTPUT0", "Bytes")
    run = commands(asked)
    answer = run.curl()
    if model in ("half", "brain"):
        assert answer.endswith(file)
    else:
        assert json.loads(answer, parse_constant=float)["outputs"][0]["shape"] == [len(shown)]
    given = np.frombuffer(file, console_try_models.NUMPY[model])
    assert run.python()["OUTPUT0"] == strings(given)
    if model == "long":
        assert run.infer()["outputs"][0]["data"] == [9007199254740993, -9223372036854775808]


def test_numpy_reads_a_saved_output(form, tmp_path):
    asked = form("fixed")
    asked.fill("INPUT0", "values", "[[[1, 2, 3], [4, 5, 6.5]]]")
    assert asked.send().startswith("Answer")
    (tmp_path / "out.npy").write_bytes(asked.kept_of("OUTPUT0", "NumPy"))
    assert np.load(tmp_path / "out.npy").tolist() == [[[1, 2, 3], [4, 5, 6.5]]]


@pytest.mark.parametrize("model, source, text, message", [
    ("fixed", "values", "1 2 3 4 5", "shape [?, 2, 3] needs a multiple of 6 elements, got 5"),
    ("fixed", "values", "[[1, 2], [3, 4], [5, 6]]", "the lists have shape [1, 3, 2], but [?, 2, 3] is needed"),
    ("fixed", "values", "[1, 2", '1 "[" without "]"'),
    ("fixed", "values", "1 2 3 4 5 x", '"x" is not a number'),
    ("long", "values", "9223372036854775808", "9223372036854775808 does not fit INT64: -9223372036854775808 to 9223372036854775807"),
    ("bytes", "values", "256", "256 does not fit UINT8: 0 to 255"),
])
def test_invalid_values_are_reported_beside_the_field_and_not_sent(form, model, source, text, message):
    asked = form(model)
    asked.fill("INPUT0", source, text)
    assert asked.send() == "Nothing was sent: see the messages above."
    assert asked.message("INPUT0") == message
    field = f"document.querySelector('{asked.input('INPUT0')} [aria-invalid]')"
    assert asked.js(f"document.activeElement === {field}")
    assert asked.js(f"{field}.getAttribute('aria-describedby').split(' ').map((id) => document.getElementById(id).innerText).includes({json.dumps(message)})")
    assert asked.js(f"document.querySelector('{asked.input('INPUT0')} .try-error').getAttribute('role')") == "alert"
    asked.fill("INPUT0", "zeros")
    assert asked.send().startswith("Answer") and asked.message("INPUT0") == ""


def test_raw_files_must_have_the_size_of_the_tensor(form, files):
    asked = form("fixed")
    asked.fill("INPUT0", "raw", files=[files / "odd.bin"])
    asked.send()
    assert asked.message("INPUT0") == "odd.bin has 15 bytes: not a whole number of 4-byte elements"
    asked.fill("INPUT0", "raw", files=[files / "seven.bin"])
    asked.send()
    assert asked.message("INPUT0") == "seven.bin has 28 bytes: shape [?, 2, 3] needs a multiple of 6 elements, got 7"
    asked.fill("INPUT0", "raw")
    asked.send()
    assert asked.message("INPUT0") == "Choose a file."
    asked.fill("INPUT0", "raw", files=[files / "six.bin"])
    assert asked.send().startswith("Answer")
    assert kept(asked, "OUTPUT0")["data"] == [0, 1, 2, 3, 4, 5]


# ---- texts and bytes


def test_lines_become_elements_and_markup_stays_text(form, commands):
    asked = form("texts")
    asked.fill("INPUT0", "lines", "one's \"two\" $HOME `x` \\n\n<img src=x onerror=alert(1)>\n\u00e4 \U0001f600")
    assert asked.send().startswith("Answer")
    wanted = ["one's \"two\" $HOME `x` \\n", "<img src=x onerror=alert(1)>", "\u00e4 \U0001f600"]
    assert asked.texts(f"{asked.output('OUTPUT0')} .try-text") == wanted
    assert asked.js("document.querySelector('.try img')") is None
    run = commands(asked)
    assert json.loads(run.curl())["outputs"][0]["data"] == wanted
    assert run.infer()["outputs"][0]["data"] == wanted
    assert run.python()["OUTPUT0"] == utf8(wanted)


def test_a_multi_line_text_is_one_element(form):
    asked = form("texts")
    asked.fill("INPUT0", "text", "one\ntwo")
    assert asked.send().startswith("Answer")
    assert asked.texts(f"{asked.output('OUTPUT0')} .try-text") == ["one\ntwo"]


def test_a_file_is_one_element_and_a_picture_is_shown(form, commands, files):
    asked = form("texts")
    asked.fill("INPUT0", "files", files=[files / "no-text.bin", files / "picture.png"])
    assert asked.send().startswith("Answer")
    asked.wait("document.querySelector('.try img')?.naturalWidth === 12")
    assert "56 bytes that are not text: c8 c9 ca" in asked.view("OUTPUT0")
    given = [(files / name).read_bytes() for name in ("no-text.bin", "picture.png")]
    run = commands(asked)
    assert given[0] in run.curl() and run.python()["OUTPUT0"] == [element.decode("latin1") for element in given]


# ---- pictures and sound


def test_a_picture_is_sent_and_its_negative_shown(form, commands, files):
    asked = form("invert")
    assert asked.send().startswith("Nothing") and asked.message("picture") == "Choose an image."
    asked.fill("picture", "image", files=[files / "picture.png"])
    assert asked.send().startswith("Answer")
    pixels, width, height = asked.pixels("inverted")
    assert (width, height) == (12, 9)
    points = [pixels[at:at + 4] for at in range(0, len(pixels), 4)]
    assert points == [[255 - x * 20, 255 - y * 28, 55, 255] for y in range(9) for x in range(12)]
    run = commands(asked)
    answer = asked.kept_of("inverted", "Bytes")
    assert run.curl().endswith(answer)
    assert np.array(run.python()["inverted"], np.int64).astype(np.uint8).tobytes() == answer


def test_pictures_are_scaled_and_laid_out_as_chosen(form, files):
    asked = form("invert_float")
    assert asked.js(f"document.querySelector('{asked.input('picture')} [name=layout]').value") == "NHWC"
    asked.fill("picture", "image", files=[files / "picture.png"] * 2, colours="BGR", scale="signed", fit="cut")
    assert asked.send().startswith("Answer"), asked.message("picture")
    tensor = kept(asked, "inverted")
    assert tensor["shape"] == [2, 8, 8, 3]
    sent = 1 - np.array(tensor["data"], np.float32).reshape(2, 8, 8, 3)
    assert np.allclose(sent[0, :, :, 0], 200 / 127.5 - 1, atol=0.01) and np.array_equal(sent[0], sent[1])
    assert sent[0, 0, 0, 2] < sent[0, 0, 7, 2] and sent[0, 0, 0, 1] < sent[0, 7, 0, 1]
    asked.fill("picture", "image", colours="Grey")
    asked.page.set_files(f"{asked.input('picture')} [name=file]", [files / "picture.png"])
    assert asked.send().startswith("Nothing") and asked.message("picture") == "Grey has 1 channels, the tensor 3"
    asked.fill("picture", "image", files=[files / "sound.wav"])
    assert asked.send().startswith("Nothing") and asked.message("picture") == "sound.wav is not an image that this browser can read"


def test_a_sound_is_resampled_to_one_channel(form, files):
    asked = form("sound")
    asked.fill("audio", "audio", files=[files / "sound.wav"], rate=16000)
    assert asked.send().startswith("Answer"), asked.message("audio")
    samples = np.array(kept(asked, "samples")["data"])
    assert len(samples) == 3200 and asked.view("size") == "3200"
    wanted = 16000 * np.sin(np.arange(3200) / 40)
    assert np.abs(samples - wanted)[100:-100].max() < 600
    asked.dimension("audio", 0, 100)
    assert asked.send().startswith("Answer") and asked.view("size") == "100"
    asked.fill("audio", "audio", files=[files / "picture.png"])
    assert asked.send().startswith("Nothing") and "is not a sound" in asked.message("audio")


# ---- what models have beyond tensors


def test_labels_and_scores_are_shown_as_bars(form, commands):
    if not (repositories.EXAMPLES / "magika/1/model.onnx").exists():
        pytest.skip("the example models are not fetched")
    asked = form("magika")
    assert asked.send().startswith("Answer")
    rows = asked.texts(f"{asked.output('target_label')} tbody tr")
    assert len(rows) == 5 and rows[0].split()[0] == "iso" and float(rows[0].split()[-1]) > 0.9
    run = commands(asked)
    data = json.loads(run.curl())["outputs"][0]["data"]
    assert [row.split(":")[2] for row in data] == [row.split()[0] for row in rows]
    assert run.python()["target_label"] == utf8(data)
    asked.set("[data-wanted=target_label] [name=classes]", "")
    assert asked.send().startswith("Answer")
    rows = asked.texts(f"{asked.output('target_label')} tbody tr")
    assert len(rows) == 10 and rows[0].startswith("class ") and "10 highest values of 214" in asked.view("target_label")


def test_sound_and_text_models_answer(form, commands, files):
    if not all((repositories.EXAMPLES / name / "1/model.onnx").exists() for name in ("silero_vad", "minilm_int8")):
        pytest.skip("the example models are not fetched")
    asked = form("silero_vad")
    asked.fill("input", "audio", files=[files / "sound.wav"], rate=16000)
    asked.dimension("input", 0, 1)
    asked.fill("sr", "values", "16000")
    assert asked.send().startswith("Answer"), asked.text(".try-result")
    assert 0 <= float(asked.view("output")) <= 1
    assert "256 elements: least" in asked.view("stateN", "numbers")
    run = commands(asked)
    answer = [float(value) for value in run.python()["output"]]
    assert answer == [pytest.approx(float(asked.view("output")), rel=1e-3)]
    asked = form("minilm_int8")
    for name, typed in (("input_ids", "101 7592 102"), ("attention_mask", "1 1 1"), ("token_type_ids", "0 0 0")):
        asked.fill(name, "values", typed)
    assert asked.send().startswith("Answer"), asked.text(".try-result")
    assert "1152 elements: least" in asked.view("last_hidden_state", "numbers")
    assert "the first 3 of 3 rows, 20 of 384 columns" in asked.view("last_hidden_state", "table")


def test_optional_inputs_parameters_and_outputs_can_be_chosen(form, commands):
    asked = form("optional")
    asked.fill("text", "text", "hi")
    assert asked.send().startswith("Answer")
    assert asked.texts(f"{asked.output('said')} .try-text") == ["{} None", "hi"]
    asked.press(f"{asked.input('more')} [name=given]")
    asked.fill("more", "values", "3, 4")
    asked.set("[name=id]", "the-id")
    asked.press("[data-options=parameters] > button")
    asked.set("[data-parameter] [name=key]", "top_k")
    asked.set("[data-parameter] [name=value]", "x")
    asked.set("[data-parameter] [name=kind]", "number")
    assert asked.send().startswith("Nothing") and asked.text("[data-options=parameters] .try-error") == '"x" is not a number'
    asked.set("[data-parameter] [name=value]", "7")
    assert asked.send().startswith("Answer")
    said = asked.texts(f"{asked.output('said')} .try-text")
    assert "top_k" in said[0] and "7" in said[0] and said[0].endswith("[3, 4]")
    assert "id the-id" in asked.text(".try-result")
    run = commands(asked)
    answer = json.loads(run.curl())
    assert answer["id"] == "the-id" and answer["outputs"][0]["data"] == said
    assert sorted(run.python()["said"][0]) == sorted(said[0])
    assert asked.js("document.querySelector('[data-code=\"galatea infer\"]')") is None
    asked.press("[data-options=outputs] [name=output]")
    assert asked.send().startswith("Nothing") and asked.text("[data-options=outputs] .try-error") == "Choose at least one output."


def test_responses_of_a_decoupled_model_are_shown_one_by_one(form, commands):
    asked = form("repeat")
    asked.fill("IN", "values", "4 5 6")
    asked.fill("DELAY", "values", "1 1 1")
    assert asked.send().startswith("3 responses after ")
    assert asked.texts(f"ol {asked.output('OUT')} .try-view") == ["4", "5", "6"]
    run = commands(asked)
    lines = [json.loads(line) for line in run.curl().splitlines()]
    assert [line["outputs"][0]["data"] for line in lines] == [[4], [5], [6]]
    assert [eval(line)["outputs"][0]["data"] for line in run.python()] == [[4], [5], [6]]


def test_pieces_of_a_text_are_joined(form):
    asked = form("words")
    asked.fill("prompt", "text", "h\u00e9llo" * 20)
    assert asked.send().startswith("120 responses after ")
    assert asked.text("[data-joined=piece]") == "h\u00e9llo" * 20
    assert "70 more responses" in asked.text(".try-result")


def test_a_request_can_be_cancelled(form, server):
    asked = form("repeat")
    asked.fill("IN", "values", "1 2")
    asked.fill("DELAY", "values", "0 60000")
    asked.start()
    asked.wait("document.querySelectorAll('ol .try-output').length === 2")
    asked.press(".try-send + button")
    asked.wait("document.querySelector('.try-status').textContent.startsWith('Cancelled')")
    assert asked.status().endswith("with 1 response.")
    asked.wait("document.querySelector('.try-send + button').disabled")
    asked.fill("DELAY", "values", "0 0")
    assert asked.send().startswith("2 responses")


# ---- what goes wrong


def test_errors_of_a_model_are_shown_completely(form):
    asked = form("failing")
    assert asked.send().startswith("Refused after ")
    assert asked.text("[data-error]") == "model 'failing' was told to fail"
    assert "Status 500" in asked.text(".try-result")
    assert asked.js("document.querySelector('[data-error]').closest('[role=alert]') !== null")
    asked.press(".try-result summary")
    assert "content-length: 44" in asked.text(".try-result details pre")


def test_the_field_named_by_an_error_is_marked(form):
    asked = form("simple")
    for name, size in (("INPUT0", 1), ("INPUT1", 2)):
        asked.fill(name, "zeros")
        asked.dimension(name, 0, size)
    assert asked.send().startswith("Refused")
    told = asked.text("[data-error]")
    marked = [name for name in ("INPUT0", "INPUT1") if f"'{name}'" in told]
    assert len(marked) == 1, told
    assert asked.message(marked[0]) == told and [asked.message(name) for name in ("INPUT0", "INPUT1")].count("") == 1
    asked.dimension("INPUT1", 0, 1)
    assert asked.send().startswith("Answer") and asked.message(marked[0]) == ""


def test_an_unloaded_model_is_reported_and_can_return(form, server):
    asked = form("bools")
    assert clients.ask(server.http, "POST", "/v2/repository/models/bools/unload", {})[0] == 200
    server.wait_for_line("successfully unloaded 'bools'")
    assert asked.send().startswith("Refused") and "bools" in asked.text("[data-error]")
    assert clients.ask(server.http, "POST", "/v2/repository/models/bools/load", {})[0] == 200
    assert asked.send().startswith("Answer")


def test_the_headers_of_a_restricted_server_are_asked_for(serve, repository, page, commands):
    repository.add("identity", "identity", repositories.identity_config())
    groups = ("--http-restricted-api=metadata,model-config:x-look=glass", "--http-restricted-api=inference:x-ask=sesame")
    server = serve(repository.path, *groups)
    asked = open_form(page, server, "identity")
    asked.set(".ask input", "glass")
    asked.press(".ask button")
    asked.wait("document.querySelector('.try-send')")
    assert asked.send().startswith("Refused") and asked.text(".try-result label") == "Value of x-ask"
    asked.set(".try .ask input", "sesame")
    asked.press(".try .ask button")
    asked.wait("document.querySelector('.try-status').textContent.startsWith('Answer')")
    assert "sesame" not in asked.text(".try-code") and "x-look" not in asked.copied("curl")
    run = commands(asked, {"X_ASK": "sesame"})
    assert json.loads(run.curl())["outputs"][0]["data"] == [1.0]
    assert run.python()["OUTPUT0"] == ["1.0"]


# ---- for everybody


def test_every_control_has_a_name_and_is_reached_by_keyboard(form, page):
    asked = form("simple")
    page.evaluate("document.querySelectorAll('.try details').forEach((one) => { one.open = true; })")
    asked.press("[data-options=parameters] > button")
    nameless = asked.js(
        "Array.from(document.querySelectorAll('.try input, .try select, .try textarea, .try button'))"
        ".filter((one) => !(one.labels?.length || one.getAttribute('aria-label') || one.textContent)).map((one) => one.outerHTML)"
    )
    assert nameless == []
    asked.press("[data-parameter] button")
    asked.js(f"document.querySelector('{asked.input('INPUT0')} [data-axis]').focus()")
    page.press_key("Enter")
    asked.wait("document.querySelector('.try-status').textContent.startsWith('Answer')")
    assert asked.js("document.querySelector('.try-status').getAttribute('role')") == "status"
    assert asked.js("Array.from(document.querySelectorAll('.try [tabindex]')).every((one) => one.tabIndex === 0)")


@pytest.mark.parametrize("colors", ["light", "dark"])
def test_axe_finds_no_accessibility_faults_in_the_form(form, page, colors):
    page.emulate(colors=colors)
    try:
        for model, text in (("simple", None), ("fixed", "1 2"), ("failing", None), ("repeat", None), ("magika", None)):
            asked = form(model)
            if text:
                asked.fill("INPUT0", "values", text)
            asked.send()
            page.evaluate("document.querySelectorAll('.try details').forEach((one) => { one.open = true; })")
            assert page.violations() == [], model
    finally:
        page.emulate(colors="light")


@pytest.mark.parametrize("width", [320, 375, 1280])
def test_only_tables_may_be_wider_than_the_screen(form, page, width):
    page.resize(width, 800)
    try:
        for model in ("simple", "invert", "optional"):
            asked = form(model)
            page.evaluate("document.querySelectorAll('.try details').forEach((one) => { one.open = true; })")
            if model == "simple":
                assert asked.send().startswith("Answer")
                page.evaluate("document.querySelectorAll('.try details').forEach((one) => { one.open = true; })")
            assert page.overflow() <= 0, model
    finally:
        page.resize(*browser.VIEW)


def test_a_model_name_that_fits_no_path_is_reported(server, page):
    asked = Form(page)
    page.goto(f"http://{server.http}/")
    place = "document.body.appendChild(document.createElement('div'))"
    asked.js(f"import('./console/try.js').then((form) => form.mountTry({place}, {{model: 'a b'}}))")
    assert "cannot be part of an address" in asked.text(".try")
