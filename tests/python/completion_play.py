"""What bash offers for names of models, while a server at the usual port has some, and when it is gone: printed as JSON.

`python completion_play.py GALATEA FOLDER`, in a network of its own: the port is the one that users have.
"""

import http.server
import json
import os
import pathlib
import subprocess
import sys
import threading

# The second half are names that a shell would obey, or read otherwise.
NAMES = ["iris", "resnet-50_v1.5", "iris", "$(touch owned)", "`touch owned`", "a b", "-x", "a;b", "*", "\u001b[2J", ""]


class Index(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        body = json.dumps([{"name": name, "version": "1", "state": "READY"} for name in NAMES]).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def run(*words):
    done = subprocess.run(words, capture_output=True, text=True, timeout=30, check=True)
    assert done.stderr == "", done.stderr
    return done.stdout


def offered(script, *words):
    quoted = " ".join(f"'{word}'" for word in words)
    ask = f'{script}\nCOMP_WORDS=({quoted}); COMP_CWORD={len(words) - 1}; _galatea_complete; printf "%s\\n" "${{COMPREPLY[@]}}"'
    return run("bash", "--norc", "-c", ask).split()


def play(galatea, folder):
    os.chdir(folder)
    pathlib.Path("galatea").symlink_to(galatea)
    os.environ["PATH"] = f"{folder}:{os.environ['PATH']}"
    script = run(galatea, "completions", "bash")
    seen = {}
    with http.server.ThreadingHTTPServer(("127.0.0.1", 8000), Index) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        for line in ("infer ", "infer ir", "models re", "models load i", "infer --st"):
            seen[line] = offered(script, "galatea", *line.split(" "))
        seen["names"] = run(galatea, "completions", "model-names")
        server.shutdown()
    seen["gone"] = offered(script, "galatea", "infer", "i")
    seen["none"] = run(galatea, "completions", "model-names")
    seen["owned"] = pathlib.Path("owned").exists()
    return seen


if __name__ == "__main__":
    print(json.dumps(play(*sys.argv[1:])))
