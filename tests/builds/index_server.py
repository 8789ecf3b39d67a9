"""An index of wheels on the loopback address, as well or ill behaved as a test wants it."""

import contextlib
import html
import re
import socket
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import quote, unquote


@dataclass
class Answer:
    """What a path answers.

    Attributes:
        ranges: whether parts are given.
        failures: statuses of the first requests, before the real answer.
        cut_bytes: the first answer breaks off after so many bytes.
        headers: more of them.
    """

    body: bytes
    content_type: str = "application/octet-stream"
    ranges: bool = True
    failures: list[int] = field(default_factory=list)
    cut_bytes: int | None = None
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)


class Index:
    """Paths with their answers, and what was asked for."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.answers: dict[str, Answer] = {}
        self.asked: Counter[str] = Counter()
        self.sent_bytes: Counter[str] = Counter()
        self.requests: list[tuple[str, str]] = []

    def page(self, path: str, body: str | bytes, content_type: str = "text/html", **how: Any) -> str:
        """Serve a page; returns its URL."""
        content = body.encode() if isinstance(body, str) else body
        self.answers[path] = Answer(content, content_type, **how)
        return self.url + path

    def file(self, path: str, body: bytes, **how: Any) -> str:
        """Serve a file, its path unquoted; returns its URL."""
        self.answers[path] = Answer(body, **how)
        return self.url + quote(path)

    def links(
        self, path: str, names: Sequence[str], base: str = "/whl/", attributes: str = "", **how: Any
    ) -> str:
        """Serve a page that links to files of these names; returns the index's address, without `torch/`."""
        lines = [f'<a href="{base}{quote(name)}" {attributes}>{html.escape(name)}</a><br/>' for name in names]
        self.page(
            f"{path}torch/", "<!DOCTYPE html><html><body>\n" + "\n".join(lines) + "</body></html>", **how
        )
        return self.url + path


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        index: Index = self.server.index  # type: ignore[attr-defined]
        path = unquote(self.path)
        index.asked[path] += 1
        asked = self.headers.get("Range", "")
        index.requests.append((path, asked))
        answer = index.answers.get(path)
        if answer is None:
            return self._send(404, b"no such page", {})
        if answer.failures:
            return self._send(answer.failures.pop(0), b"trouble", {"Retry-After": "0"})
        body, status, headers = answer.body, answer.status, dict(answer.headers)
        headers.setdefault("Content-Type", answer.content_type)
        if asked and answer.ranges:
            start, end = self._part(asked, len(body))
            if start >= len(body):
                return self._send(416, b"", {"Content-Range": f"bytes */{len(body)}"})
            headers["Content-Range"] = f"bytes {start}-{end - 1}/{len(body)}"
            body, status = body[start:end], 206
        cut, answer.cut_bytes = answer.cut_bytes, None
        index.sent_bytes[path] += len(body)
        return self._send(status, body, headers, cut)

    def _part(self, asked: str, size: int) -> tuple[int, int]:
        first, last = re.fullmatch(r"bytes=(\d*)-(\d*)", asked).groups()  # type: ignore[union-attr]
        if not first:
            return max(0, size - int(last)), size
        return int(first), min(size, int(last) + 1) if last else size

    def _send(self, status: int, body: bytes, headers: dict[str, str], cut: int | None = None) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body if cut is None else body[:cut])
        if cut is not None:
            self.wfile.flush()
            self.close_connection = True

    def log_message(self, format: str, *args: object) -> None:
        pass


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.connections: list[socket.socket] = []

    def process_request(self, request: Any, client_address: Any) -> None:
        self.connections.append(request)
        super().process_request(request, client_address)

    def handle_error(self, request: object, client_address: object) -> None:
        pass  # a client that hangs up early, since a part was enough for it


@contextlib.contextmanager
def serving() -> Iterator[Index]:
    """An index that is up inside the block, and down after it."""
    server = _Server(("127.0.0.1", 0), _Handler)
    index = Index(f"http://127.0.0.1:{server.server_port}")
    server.index = index  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield index
    finally:
        server.shutdown()
        server.server_close()
        for connection in server.connections:  # kept open between requests, they would go on answering
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        thread.join()
