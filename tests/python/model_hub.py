"""A small model hub on this machine: repositories with commits, listings in pages, large files on another server, tokens."""

import hashlib
import http.server
import json
import urllib.parse

import web_server

# Larger files are kept apart, as on the real hub.
LARGE = 1000
PAGE = 3


class Files(http.server.BaseHTTPRequestHandler):
    """Answers with content and knows of ranges."""

    protocol_version = "HTTP/1.1"

    def content(self, content, **headers):
        start = int(self.headers.get("Range", "bytes=0-").removeprefix("bytes=").split("-")[0])
        if start and start >= len(content):
            return self.answer(416, b"")
        more = {"Content-Range": f"bytes {start}-{len(content) - 1}/{len(content)}"} if start else {}
        return self.answer(206 if start else 200, content[start:], **headers, **more)

    def answer(self, status, body=b"", **headers):
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)


class WebServer(web_server.WebServer):
    """`asked` are its requests: path, headers."""

    def __init__(self, respond):
        self.asked = []

        def note(request):
            self.asked.append((request.path, request.headers))
            respond(request)

        super().__init__(note, Files)


def oid(content):
    """As git names a content."""
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


class Hub:
    def __init__(self):
        self.repositories = {}
        self.web = WebServer(self.respond)
        self.store = WebServer(self.respond_from_store)
        # Where large files are said to be: a proxy may stand before the store.
        self.store_url = self.store.url
        # By SHA-256 and by path: what is sent in place of a content.
        self.damaged = {}

    def commit(self, repository, files, revision="main", token=None, gated=False):
        """Files by path become what a revision is; the commit's name."""
        files = {path: content.encode() if isinstance(content, str) else content for path, content in files.items()}
        name = oid(repr(sorted(files.items())).encode())
        found = self.repositories.setdefault(repository, {"revisions": {}, "commits": {}})
        found.update(token=token, gated=gated)
        found["revisions"][revision] = name
        found["commits"][name] = files
        return name

    def fetched(self):
        """Paths of files whose content was asked for, of both servers."""
        return [path for path, _ in self.web.asked if "/resolve/" in path] + [path for path, _ in self.store.asked]

    def respond(self, request):
        url = urllib.parse.urlsplit(request.path)
        parts = [urllib.parse.unquote(part) for part in url.path.strip("/").split("/")]
        is_api = parts[:2] == ["api", "models"]
        parts = parts[2:] if is_api else parts
        repository = self.repositories.get("/".join(parts[:2]))
        if refused := self.refusal(request, repository):
            status, code, text = refused
            return request.answer(status, json.dumps({"error": text}).encode(), X_Error_Code=code, X_Error_Message=text)
        if is_api and parts[2] == "revision":
            return self.respond_revision(request, repository, parts[3])
        files = repository["commits"].get(parts[3])
        if is_api:
            return self.respond_tree(request, files, urllib.parse.parse_qs(url.query))
        path = "/".join(parts[4:])
        if path not in files:
            return request.answer(404, b"Entry not found", X_Error_Code="EntryNotFound", X_Error_Message="Entry not found")
        return self.respond_file(request, files[path], path)

    def refusal(self, request, repository):
        given = (request.headers.get("Authorization") or "").removeprefix("Bearer ")
        if given == "expired":
            return 401, "", "Invalid credentials in Authorization header"
        if repository is None or (repository["token"] and given != repository["token"]):
            return (404 if given else 401), "RepoNotFound", "Repository not found"
        if repository["gated"] and given != "accepted":
            return 403, "GatedRepo", "Access to the model is restricted"
        return None

    def respond_revision(self, request, repository, revision):
        name = repository["revisions"].get(revision)
        if name is None:
            return request.answer(404, b"{}", X_Error_Code="RevisionNotFound", X_Error_Message=f"Invalid rev id: {revision}")
        return request.answer(200, json.dumps({"id": "x", "sha": name, "siblings": []}).encode())

    def respond_tree(self, request, files, query):
        assert query["recursive"] == ["true"]
        entries = []
        for path, content in files.items():
            entry = {"type": "file", "oid": oid(content), "size": len(content), "path": path}
            if len(content) > LARGE:
                entry["lfs"] = {"oid": hashlib.sha256(content).hexdigest(), "size": len(content), "pointerSize": 130}
            entries.append(entry)
        first = int(query.get("cursor", ["0"])[0])
        more = {}
        if first + PAGE < len(entries):
            address = f"{self.url(request)}{urllib.parse.urlsplit(request.path).path}?recursive=true&cursor={first + PAGE}"
            more["Link"] = f'<{address}>; rel="next"'
        return request.answer(200, json.dumps(entries[first : first + PAGE]).encode(), **more)

    def url(self, request):
        """As the client knows this server: behind a proxy, that."""
        return f"http://{request.headers['Host']}"

    def respond_file(self, request, content, path):
        digest = hashlib.sha256(content).hexdigest()
        if len(content) > LARGE:
            headers = {"Location": f"{self.store_url}/{digest}?signature=signed-secret", "X_Linked_Etag": f'"{digest}"'}
            return request.answer(302, b"", X_Linked_Size=str(len(content)), **headers)
        return request.content(self.damaged.get(path, content), ETag=f'"{oid(content)}"')

    def respond_from_store(self, request):
        if "Authorization" in request.headers:
            return request.answer(400, b"only one way of authentication is allowed")
        wanted = urllib.parse.urlsplit(request.path).path.strip("/")
        for repository in self.repositories.values():
            for files in repository["commits"].values():
                for path, content in files.items():
                    if hashlib.sha256(content).hexdigest() == wanted:
                        return request.content(self.damaged.get(path, content), ETag='"another-etag"')
        return request.answer(404, b"")

    def stop(self):
        self.web.stop()
        self.store.stop()
