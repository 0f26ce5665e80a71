"""A web server inside the tests: a function answers each request."""

import http.server
import threading


class WebServer:
    """On a free port, until it is stopped. `respond(request)` answers GET and PUT; `handler`: the class of requests."""

    def __init__(self, respond, handler=http.server.BaseHTTPRequestHandler):
        class Handler(handler):
            def do_GET(self):
                respond(self)

            do_PUT = do_GET

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()

    @property
    def address(self):
        return f"127.0.0.1:{self.server.server_port}"

    @property
    def url(self):
        return f"http://{self.address}"

    def stop(self):
        self.server.shutdown()
        self.server.server_close()
