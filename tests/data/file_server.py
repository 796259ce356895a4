"""A real HTTP server on this machine that serves files and can fail in given ways."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TypeVar

Server = TypeVar("Server", bound="FileServer")


class FileServer(ThreadingHTTPServer):
    """Serves `files` (path -> bytes).

    faults: what to do with the next requests, first to last, instead of serving well:
        ("drop", n)              announce the whole body, send n bytes of it, break the connection
        ("short", n)             send n bytes without announcing a length, then close ("status",
        code, headers) ("redirect", location) ("stall", n)             announce the whole body, send
        n bytes, and then nothing for a long time
    ranges: whether Range is understood.
    etag: given with every file, if not empty; If-Range is compared with it.
    requests: (path, Range header or None, If-Range header or None) of every request.
    """

    daemon_threads = True

    def __init__(self, handler: type[BaseHTTPRequestHandler] | None = None) -> None:
        super().__init__(("127.0.0.1", 0), handler or FileHandler)
        self.files: dict[str, bytes] = {}
        self.faults: list[tuple] = []
        self.ranges = True
        self.etag = ""
        self.seconds_per_request = 0.0
        self.requests: list[tuple[str, str | None, str | None]] = []
        self.url = f"http://127.0.0.1:{self.server_port}"

    def handle_error(self, *words: object) -> None:
        """Quiet: a client that was killed breaks its connections."""


class FileHandler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: FileServer

    def do_GET(self) -> None:
        server, asked = self.server, self.headers.get("Range")
        server.requests.append((self.path, asked, self.headers.get("If-Range")))
        time.sleep(server.seconds_per_request)
        kind, *details = server.faults.pop(0) if server.faults else ("serve",)
        if kind == "status":
            return self.answer(details[0], b"<html>not the file</html>", **details[1])
        if kind == "redirect":
            return self.answer(302, b"", Location=details[0])
        body = server.files.get(self.path)
        if body is None:
            return self.answer(404, b"no such file")
        headers = {"ETag": server.etag} if server.etag else {}
        start = int(asked.removeprefix("bytes=").rstrip("-")) if asked and server.ranges else 0
        if self.headers.get("If-Range") not in (None, server.etag):
            start = 0
        if start >= len(body) > 0:
            return self.answer(416, b"", **{"Content-Range": f"bytes */{len(body)}"})
        if start:
            headers["Content-Range"] = f"bytes {start}-{len(body) - 1}/{len(body)}"
        if kind == "serve":
            return self.answer(206 if start else 200, body[start:], **headers)
        self.send_response(206 if start else 200)
        if kind != "short":
            self.send_header("Content-Length", str(len(body) - start))
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(body[start : start + details[0]])
        self.wfile.flush()
        if kind == "stall":
            time.sleep(20)
        self.close_connection = True

    def answer(self, status: int, body: bytes, **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, *words: object) -> None:
        """Quiet."""


@contextmanager
def serving(kind: type[Server] = FileServer) -> Iterator[Server]:
    """A server that runs while the block does."""
    with kind() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
