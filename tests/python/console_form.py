"""The console's form in a browser, driven as a person does: choose, type, send, read."""

import base64
import json
import os
import struct
import subprocess
import sys
import zlib

import servers

WAIT_MS = 20_000


def quoted(text):
    return json.dumps(str(text))


class Form:
    """The form of one model. `page` is that of the module `browser`."""

    def __init__(self, page):
        self.page = page

    def js(self, expression):
        return self.page.evaluate(expression)

    def wait(self, expression):
        """Until the expression is true. It is looked at within the page: its policy allows no text that is evaluated later."""
        self.js(
            f"new Promise((done, failed) => {{ const until = performance.now() + {WAIT_MS};"
            f" const look = () => {{ if ({expression}) done(true); else if (performance.now() > until) failed(new Error({quoted(expression)}));"
            " else requestAnimationFrame(look); }; look(); })"
        )

    def text(self, selector):
        return self.js(f"(document.querySelector({quoted(selector)})?.innerText ?? '').trim()")

    def texts(self, selector):
        return self.js(f"Array.from(document.querySelectorAll({quoted(selector)}), (found) => found.innerText)")

    def set(self, selector, value):
        """As typing or choosing does: the value, then the event that the page listens to."""
        self.js(
            f"(() => {{ const at = document.querySelector({quoted(selector)}); at.value = {quoted(value)};"
            " at.dispatchEvent(new Event('input', {bubbles: true})); at.dispatchEvent(new Event('change', {bubbles: true})); })()"
        )

    def press(self, selector):
        self.js(f"document.querySelector({quoted(selector)}).click()")

    @staticmethod
    def input(name):
        return f"[data-input={quoted(name)}]"

    def fill(self, name, source, text=None, files=None, **settings):
        """Chooses where an input's data comes from, and what it is; `settings` are the source's controls by name."""
        field = self.input(name)
        self.set(f"{field} [name=source]", source)
        if text is not None:
            self.set(f"{field} [name=values]", text)
        if files is not None:
            self.page.set_files(f"{field} [name=file]", files)
        for control, value in settings.items():
            self.set(f"{field} [name={control}]", value)

    def dimension(self, name, axis, size):
        self.set(f"{self.input(name)} [data-axis='{axis}']", size)

    def start(self):
        self.press(".try-send")

    def send(self):
        """Sends and waits for the end; the line that tells it."""
        self.start()
        self.wait("/after|Nothing/.test(document.querySelector('.try-status').textContent)")
        return self.status()

    def status(self):
        return self.text(".try-status")

    def message(self, name):
        """What is said beside an input."""
        return self.text(f"{self.input(name)} .try-error")

    def output(self, name):
        return f"[data-output={quoted(name)}]"

    def view(self, name, view=None):
        """The text of an output, in another view if one is named."""
        if view is not None:
            self.set(f"{self.output(name)} [name=view]", view)
        return self.text(f"{self.output(name)} .try-view")

    def kept(self, label, within="document"):
        """The bytes of the file that a button gives; the browser saves nothing meanwhile."""
        return base64.b64decode(self.js(
            "(async () => { const make = URL.createObjectURL; let file; URL.createObjectURL = (blob) => { file = blob; return '#'; };"
            f" Array.from({within}.querySelectorAll('button')).find((one) => one.textContent === {quoted(label)}).click();"
            " while (!file) await new Promise((done) => setTimeout(done, 5));"
            " URL.createObjectURL = make; const bytes = new Uint8Array(await file.arrayBuffer());"
            " return btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join('')); })()"
        ))

    def kept_of(self, output, label):
        """One of the files of an output."""
        return self.kept(label, f"document.querySelector({quoted(self.output(output))})")

    def copied(self, name):
        """The command as its button copies it."""
        return self.js(
            "(async () => { let text; Object.defineProperty(navigator, 'clipboard', {configurable: true, value: {writeText: async (given) => { text = given; }}});"
            f" document.querySelector('[aria-label={quoted('Copy ' + name)}]').click();"
            " while (text === undefined) await new Promise((done) => setTimeout(done, 10)); return text; })()"
        )

    def pixels(self, name):
        """Red, green, blue and alpha of each point of an output's picture, and its width and height."""
        return self.js(
            f"(() => {{ const at = document.querySelector({quoted(self.output(name) + ' canvas')});"
            " const all = at.getContext('2d').getImageData(0, 0, at.width, at.height).data;"
            " return [Array.from(all), at.width, at.height]; })()"
        )


def open_form(page, server, model):
    """The form of a model, in the console's page."""
    # Anew, also where it is the page that is shown.
    page.goto("about:blank")
    page.goto(f"http://{server.http}/#/models/{model}/try")
    form = Form(page)
    form.wait("document.querySelector('.try-send, .ask')")
    return form


# Runs a script, then prints what its outputs hold: texts of numbers, and bytes as characters of one byte.
RUNNER = """\
import json, runpy, sys

def text(value):
    return value.decode("latin1") if isinstance(value, bytes) else str(value)

result = runpy.run_path(sys.argv[1]).get("result")
outputs = result.get_response()["outputs"] if result else []
told = {output["name"]: [text(value) for value in result.as_numpy(output["name"]).reshape(-1)] for output in outputs}
print("\\0" + json.dumps(told))
"""


class Commands:
    """Runs what the page prints, in a folder with the file it offers."""

    def __init__(self, form, folder, env=None):
        self.form, self.folder = form, folder
        self.env = {**os.environ, "PATH": f"{servers.galatea_binary().parent}:{os.environ['PATH']}", **(env or {})}
        if form.text(".try-code button").startswith("Download"):
            (folder / "request.bin").write_bytes(form.kept("Download request.bin"))

    def curl(self):
        """The body of the answer."""
        run = subprocess.run(["bash", "-c", self.form.copied("curl")], cwd=self.folder, env=self.env, capture_output=True, timeout=60)
        assert run.returncode == 0 and not run.stderr, run.stderr
        answer = self.folder / "answer.bin"
        return answer.read_bytes() if answer.exists() else run.stdout

    def python(self):
        """Outputs by name, as numpy has them, or the lines it prints."""
        script = self.folder / "request.py"
        script.write_text(self.form.copied("Python"))
        run = subprocess.run([sys.executable, "-c", RUNNER, script], cwd=self.folder, env=self.env, capture_output=True, text=True, timeout=60)
        assert run.returncode == 0, run.stderr
        printed, _, outputs = run.stdout.partition("\0")
        assert printed, "it prints the answer"
        return json.loads(outputs) or printed.splitlines()

    def infer(self):
        command = self.form.copied("galatea infer") + " --json"
        run = subprocess.run(["bash", "-c", command], cwd=self.folder, env=self.env, capture_output=True, text=True, timeout=60)
        assert run.returncode == 0, run.stderr
        return json.loads(run.stdout)


def kept(form, name):
    """An output as its file has it."""
    return json.loads(form.kept_of(name, "JSON"))


def strings(values):
    return [str(value) for value in values]


def utf8(texts):
    """As `Commands.python` has elements of BYTES."""
    return [text.encode().decode("latin1") for text in texts]


def png(width, height, colour):
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = b"".join(b"\0" + b"".join(bytes(colour(x, y)) for x in range(width)) for y in range(height))
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
