"""The console's form in a browser, driven as a person does: choose, type, send, read."""

import base64
import json

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
