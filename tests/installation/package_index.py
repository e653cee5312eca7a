"""A package index on loopback: what is uploaded to it can be installed from it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import attrs

__all__ = ["PackageIndex", "serve_index"]

_FIELD = re.compile(rb'name="([^"]+)"(?:; filename="([^"]+)")?')


@attrs.frozen
class PackageIndex:
    """An index by PEP 503, with the upload endpoint that PyPI has; `files` has the uploads in their order."""

    url: str
    files: dict[str, bytes]

    @property
    def simple(self) -> str:
        return f"{self.url}/simple"

    @property
    def upload(self) -> str:
        return f"{self.url}/legacy/"


@contextmanager
def serve_index() -> Iterator[PackageIndex]:
    """Serve an index that has no files yet."""
    files: dict[str, bytes] = {}
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(_Handler, files)) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield PackageIndex(f"http://127.0.0.1:{server.server_port}", files)
        finally:
            server.shutdown()
            thread.join()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def __init__(self, files: dict[str, bytes], *args: Any) -> None:
        self._files = files  # first, as the next line answers a request
        super().__init__(*args)

    def do_GET(self) -> None:
        _, kind, name, *_ = *self.path.split("/"), ""
        found = self._files.get(name) if kind == "files" else _links(self._files, name)
        self._answer(200 if found else 404, found or b"", "text/html" if kind == "simple" else "application/zip")

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_POST(self) -> None:
        """Take one file, as an upload to a package index sends it."""
        fields = dict(_fields(self._body(), self.headers["Content-Type"]))
        name, content = fields["content"]
        intact = fields["sha256_digest"][1].decode() == sha256(content).hexdigest()
        if not intact or name in self._files:
            self._answer(400, b"not intact, or there already", "text/plain")
            return
        self._files[name] = content
        self._answer(200, b"", "text/plain")

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers["Content-Length"]))
        chunks = []
        while size := int(self.rfile.readline(), 16):
            chunks.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(chunks)

    def _answer(self, status: int, body: bytes, kind: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        # A later run has other files of these names, perhaps on this port.
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Write nothing: the tests say what is wrong."""


def _links(files: dict[str, bytes], project: str) -> bytes:
    """The page of a project, empty if it has no files."""
    return "".join(
        f'<a href="/files/{name}#sha256={sha256(content).hexdigest()}">{name}</a><br>'
        for name, content in files.items()
        if name.partition("-")[0].replace("_", "-") == project
    ).encode()


def _fields(body: bytes, content_type: str) -> Iterator[tuple[str, tuple[str, bytes]]]:
    """The parts of a form: name, and the file's name with the content."""
    boundary = content_type.partition("boundary=")[2].strip('"').encode()
    for part in body.split(b"--" + boundary)[1:-1]:
        head, _, content = part.partition(b"\r\n\r\n")
        if (field := _FIELD.search(head)) is None:
            raise ValueError(f"a part without a name: {head!r}")
        yield field[1].decode(), ((field[2] or b"").decode(), content.removesuffix(b"\r\n"))
