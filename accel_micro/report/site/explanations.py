"""The pages of `accel-micro explain --publish`: where they lie among the others, and the page that lists them.

Each is a file that is complete by itself. What the list says of one is read from its head, so a page that was written
on another machine is listed too, once it lies in the folder.
"""

import hashlib
import re
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path
from typing import Final

from accel_micro.report.explain_page import GENERATOR
from accel_micro.report.site.text import moment

FOLDER: Final = "explanations"
INDEX: Final = "explanations.html"
_MOST_BYTES: Final = 4 << 20
"""The page of GPT-2 small has 80 rows a side and a few thousand strips: a tenth of this."""


@dataclass(frozen=True)
class Listed:
    """One page. `href` is relative to the folder of all pages; `started`: when its younger side was captured."""

    href: str
    title: str
    summary: str
    causes: str
    started: str


def name_of(title: str) -> str:
    """File of an explanation: legible, and the same for the same question, so that a later answer replaces it.

    >>> name_of("mnist, training: cpu batch=4 (baseline) and cuda batch=4 (contender)")
    'mnist-training-cpu-batch-4-baseline-and-cuda-batch-4-contender-b6834e9c.html'
    """
    digest = hashlib.sha1(title.encode(), usedforsecurity=False).hexdigest()[:8]
    return f"{re.sub(r'[^A-Za-z0-9._]+', '-', title).strip('-.')[:100]}-{digest}.html"


def listed(folder: Path) -> tuple[list[Listed], list[str]]:
    """The pages below a folder of pages, the newest first, and those that are none, in sentences."""
    found: list[tuple[str, Listed]] = []
    problems = []
    for path in sorted((folder / FOLDER).glob("*.html")):
        try:
            if path.stat().st_size > _MOST_BYTES:
                raise ValueError("it is too large")
            head = _Head(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            problems.append(f"{path} cannot be read: {error}")
            continue
        if head.said("generator") != GENERATOR or not head.title:
            problems.append(f"{path} is no page of `accel-micro explain`, so it is not listed")
            continue
        started = head.said("started")
        found.append(
            (
                started,
                Listed(
                    f"{FOLDER}/{path.name}",
                    head.title,
                    head.said("description"),
                    head.said("causes"),
                    moment(started),
                ),
            )
        )
    return [each for _, each in sorted(found, key=lambda one: one[0], reverse=True)], problems


class _Head(HTMLParser):
    """Title and named facts in the head of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.facts: dict[str, str] = {}
        self.title = ""
        self._in_title = False
        self.feed(text.partition("<style")[0])

    def said(self, name: str) -> str:
        """Of that fact; empty where it is not there."""
        return self.facts.get(name, "")

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        """Note what a `meta` names."""
        named = dict(attributes)
        self._in_title = tag == "title"
        if tag == "meta" and named.get("name"):
            self.facts[str(named["name"])] = named.get("content") or ""

    def handle_endtag(self, tag: str) -> None:
        """Leave the title."""
        self._in_title = False

    def handle_data(self, data: str) -> None:
        """The title's text."""
        if self._in_title:
            self.title += data.strip()
