"""Fetching by HTTP: pages, parts of files and whole files, with retries, limits and sentences for people."""

import contextlib
import logging
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeVar
from urllib.parse import urlsplit

import requests
from pypi_simple import ACCEPT_ANY
from requests.adapters import HTTPAdapter
from requests.exceptions import ChunkedEncodingError
from urllib3.exceptions import MaxRetryError
from urllib3.util import Retry

logging.getLogger("urllib3").setLevel(logging.ERROR)
"""Its warnings about retries would come out of asv's log as templates; what is given up is said in a sentence."""

TIMEOUT_SECONDS: Final = (10.0, 60.0)
"""To connect, and between two pieces of an answer."""

LARGEST_PAGE_BYTES: Final = 64 << 20
LARGEST_WHEEL_BYTES: Final = 64 << 30
"""Well above what any torch wheel was (5 GB); more is a mistake or malice."""

_T = TypeVar("_T")
_RETRIED: Final = (408, 429, 500, 502, 503, 504)
_PIECE_BYTES: Final = 1 << 20
_LONGEST_PAUSE_SECONDS: Final = 30


class Unreachable(RuntimeError):
    """A server did not give what was asked for; the message says which, what, and what may help."""


class Down(Unreachable):
    """There is no connection to the server, or none that lasts: asking it for more would fail too."""


class Absent(Unreachable):
    """The server answers, and says that there is no such page or file."""


class NoParts(Unreachable):
    """The server gives files only as a whole."""


class TooLarge(Unreachable):
    """A page or a file is larger than any real one."""


@dataclass(frozen=True)
class Page:
    """What a server answered: `url` after redirects."""

    url: str
    content_type: str
    body: bytes


@dataclass(frozen=True)
class Part:
    """Bytes `start` up to `start + len(data)` of a file of `total_bytes`."""

    start: int
    data: bytes
    total_bytes: int


class _Useless(Exception):
    """An answer that asking anew may better."""


_BROKEN_OFF: Final = (requests.ConnectionError, requests.Timeout, ChunkedEncodingError, _Useless)


class _Patient(Retry):
    """urllib3's retries, without a server's wish for hours of pause."""

    def get_retry_after(self, response: object) -> float | None:
        asked = super().get_retry_after(response)  # type: ignore[arg-type]
        return None if asked is None else min(asked, _LONGEST_PAUSE_SECONDS)


class Web:
    """Connections that are kept open between requests; threads may share one. A context manager closes them.

    Args:
        attempts: how often a request is tried when the server is overloaded or the connection breaks.
        pause_seconds: before the second attempt; doubled before each further one.
    """

    def __init__(self, attempts: int = 4, pause_seconds: float = 0.5) -> None:
        self._attempts = attempts
        self._pause_seconds = pause_seconds
        retry = _Patient(
            total=attempts - 1,
            backoff_factor=pause_seconds,
            backoff_max=_LONGEST_PAUSE_SECONDS,
            redirect=10,
            status_forcelist=_RETRIED,
            raise_on_status=False,
        )
        self._session = requests.Session()
        self._session.headers["User-Agent"] = "accel-micro (+https://github.com/accel-micro/accel_micro)"
        for scheme in ("http://", "https://"):
            self._session.mount(scheme, HTTPAdapter(max_retries=retry, pool_maxsize=16))

    def __enter__(self) -> "Web":
        return self

    def __exit__(self, *_: object) -> None:
        self._session.close()

    def page(self, url: str) -> Page:
        """A page of an index.

        Raises:
            Absent, TooLarge, Unreachable: it cannot be had.
        """

        def read() -> Page:
            with self._get(url, {"Accept": ACCEPT_ANY}) as response:
                body = b"".join(_limited(response, url, LARGEST_PAGE_BYTES))
                return Page(response.url, response.headers.get("Content-Type", "text/html"), body)

        return self._again(url, read)

    def part(self, url: str, start: int, length: int) -> Part:
        """`length` bytes of a file from `start` on; a negative start counts from the end, to the end.

        Raises:
            NoParts: the server does not answer range requests.
            Absent, Unreachable: it cannot be had.
        """
        wanted = f"bytes={start}" if start < 0 else f"bytes={start}-{start + length - 1}"

        def read() -> Part:
            # Compressed on the way, a part's bytes would be of something else.
            headers = {"Range": wanted, "Accept-Encoding": "identity"}
            with self._get(url, headers, accepted=(200, 206, 416, 501)) as response:
                shown = re.fullmatch(r"bytes (\d+)-\d+/(\d+)", response.headers.get("Content-Range", ""))
                if response.status_code != 206 or shown is None:
                    raise NoParts(f"{_host(url)} gives files only as a whole (no range requests)")
                data = b"".join(_limited(response, url, max(length, -start)))
                return Part(int(shown[1]), data, int(shown[2]))

        return self._again(url, read)

    def size_bytes(self, url: str) -> int | None:
        """Size of a file, where the server says it.

        Raises:
            Absent, Unreachable: it cannot be had.
        """

        def read() -> int | None:
            try:
                return self.part(url, 0, 1).total_bytes
            except NoParts:
                with self._get(url, {"Accept-Encoding": "identity"}) as response:
                    length = response.headers.get("Content-Length", "")
                    return int(length) if length.isdecimal() else None

        return self._again(url, read)

    def download(self, url: str, path: Path, advance: Callable[[int], None] = lambda done: None) -> None:
        """Download to `path`, going on from what is already there.

        Args:
            advance: told the bytes that are there, whenever there are more.

        Raises:
            Absent, TooLarge, Unreachable: it cannot be had; what came stays at `path`.
            OSError: it cannot be written.
        """

        def read() -> None:
            have = path.stat().st_size if path.exists() else 0
            headers = {"Accept-Encoding": "identity"}
            if have:
                headers["Range"] = f"bytes={have}-"
            with self._get(url, headers, accepted=(200, 206, 416)) as response:
                shown = response.headers.get("Content-Range", "")
                if response.status_code == 416:
                    if shown == f"bytes */{have}":
                        return  # it was all there
                    path.unlink()
                    raise _Useless(f"{path} has more bytes than the file")
                go_on = response.status_code == 206 and shown.startswith(f"bytes {have}-")
                if response.status_code == 206 and not go_on:
                    path.unlink()
                    raise _Useless("the server gives another part than the one asked for")
                done = have if go_on else 0
                with path.open("ab" if go_on else "wb") as file:
                    for piece in _limited(response, url, LARGEST_WHEEL_BYTES):
                        file.write(piece)
                        done += len(piece)
                        advance(done)

        self._again(url, read)

    @contextlib.contextmanager
    def _get(
        self, url: str, headers: dict[str, str], accepted: tuple[int, ...] = (200,)
    ) -> Iterator[requests.Response]:
        with self._session.get(url, headers=headers, stream=True, timeout=TIMEOUT_SECONDS) as response:
            if response.status_code not in accepted:
                raise _refusal(response)
            if urlsplit(url).scheme == "https" and urlsplit(response.url).scheme != "https":
                raise Unreachable(f"{_host(url)} leads from https to {response.url}, which is not protected")
            yield response

    def _again(self, url: str, read: Callable[[], _T]) -> _T:
        # urllib3 tries again until an answer begins; one that breaks off in the middle is left to us.
        for attempt in range(1, self._attempts + 1):
            try:
                return read()
            except (requests.RequestException, UnicodeError, _Useless) as error:
                given_up = isinstance(error.args[0] if error.args else None, MaxRetryError)
                if attempt == self._attempts or given_up or not isinstance(error, _BROKEN_OFF):
                    raise Down(_sentence(url, error)) from error
            time.sleep(min(self._pause_seconds * 2 ** (attempt - 1), _LONGEST_PAUSE_SECONDS))
        raise AssertionError("no attempt was made")


def without_password(url: str) -> str:
    """The URL without user name and password, which must not get into files that are shared."""
    return re.sub(r"^([a-z][a-z0-9+.-]*://)[^/?#]*@", r"\1", url, flags=re.IGNORECASE)


def _limited(response: requests.Response, url: str, limit_bytes: int) -> Iterator[bytes]:
    total = 0
    for piece in response.iter_content(_PIECE_BYTES):
        total += len(piece)
        if total > limit_bytes:
            raise TooLarge(f"{without_password(url)} is larger than {limit_bytes:,} bytes; stopped reading")
        yield piece


def _refusal(response: requests.Response) -> Unreachable:
    url, status = without_password(response.url), response.status_code
    if status in (403, 404, 410):  # S3 says 403 for what is not there
        return Absent(f"{url} is not there (HTTP {status})")
    return Unreachable(f"{url} answers HTTP {status} {response.reason}")


def _host(url: str) -> str:
    try:
        return urlsplit(url).hostname or url
    except ValueError:
        return without_password(url)


def _sentence(url: str, error: Exception) -> str:
    cause: object = error
    while isinstance(cause, Exception) and (
        inner := getattr(cause, "reason", None) or next(iter(cause.args), None)
    ):
        if not isinstance(inner, Exception):
            break
        cause = inner
    why = re.sub(r"^.*(?:Connection|Pool)\([^)]*\): *|<[^>]*>:? *", "", str(cause)) or type(cause).__name__
    return f"{_host(url)} cannot be reached ({why}); is the network up, and is {without_password(url)} right?"
