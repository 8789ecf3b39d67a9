"""Links of a PEP 503 page. pypi-simple builds a tree of the whole page first, which takes several times as long."""

from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Final
from urllib.parse import urljoin

SUPPORTED_MAJOR: Final = 1
"""Of the repository version (PEP 629) in a page's `meta` element."""

_LONGEST_TEXT: Final = 1000


class UnsupportedPage(ValueError):
    """A page of a repository version that does not exist yet."""


@dataclass
class Anchor:
    """One link: its absolute URL, its attributes, and the text that people see."""

    url: str
    attributes: dict[str, str]
    text: str = ""


@dataclass
class _Page:
    base: str
    anchors: list[Anchor] = field(default_factory=list)
    version: str = "1.0"


class _Reader(HTMLParser):
    def __init__(self, url: str) -> None:
        super().__init__()
        self.page = _Page(url)
        self._open: Anchor | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in ("a", "base", "meta"):
            return
        attributes = {name: value or "" for name, value in attrs}
        if tag == "a" and "href" in attributes:
            self._open = Anchor(self._absolute(attributes["href"].strip()), attributes)
            self.page.anchors.append(self._open)
        elif tag == "base" and "href" in attributes:
            self.page.base = self._absolute(attributes["href"])
        elif tag == "meta" and attributes.get("name") == "pypi:repository-version":
            self.page.version = attributes.get("content", "")

    def handle_endtag(self, tag: str) -> None:
        if tag == "a":
            self._open = None

    def handle_data(self, data: str) -> None:
        if self._open is not None and len(self._open.text) < _LONGEST_TEXT:
            self._open.text += data[:_LONGEST_TEXT]

    def _absolute(self, address: str) -> str:
        try:
            return urljoin(self.page.base, address)
        except ValueError:
            return address  # none at all, which is found where it is used


def anchors(body: bytes, url: str) -> list[Anchor]:
    """The links of a page in order, relative ones resolved against its URL or its `base`.

    Raises:
        UnsupportedPage: it is of a later repository version.
    """
    reader = _Reader(url)
    reader.feed(body.decode("utf-8", errors="replace"))
    reader.close()
    major = reader.page.version.partition(".")[0]
    if not major.isdecimal() or int(major) > SUPPORTED_MAJOR:
        raise UnsupportedPage(f"it is of repository version {reader.page.version[:20]!r}")
    for anchor in reader.page.anchors:
        anchor.text = anchor.text.strip()
    return reader.page.anchors
