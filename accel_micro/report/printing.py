"""Lines with their styles to a terminal, or plain to a file or a pipe."""

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, NamedTuple

from accel_micro.report.words import wrapped

if TYPE_CHECKING:
    from rich.console import Console


class Line(NamedTuple):
    """A line and its style."""

    text: str
    style: str = ""


def chosen(stream: IO[str] | None) -> IO[str]:
    """The stream, or standard output. What it cannot write, such as → or µ, becomes a question mark."""
    stream = stream or sys.stdout
    if hasattr(stream, "reconfigure"):
        stream.reconfigure(errors="replace")
    return stream


def paragraph(text: str, width: int, mark: str = "", style: str = "", hang: int = 0) -> Iterator[Line]:
    """Text whose further lines start below its first, to the right of a mark."""
    for line in wrapped(text, width, mark, hang):
        yield Line(line, style)


@contextmanager
def trimmed(console: "Console") -> Iterator[None]:
    """What is printed within: a file or a pipe gets no spaces at the ends of its lines."""
    if console.is_terminal:
        yield
        return
    with console.capture() as capture:
        yield
    console.file.write("".join(f"{line.rstrip()}\n" for line in capture.get().splitlines()))


def print_lines(lines: Iterable[tuple[str, str]], console: "Console") -> None:
    """Print them, styled on a terminal; a file or a pipe gets no styles and no spaces at the ends of lines."""
    from rich.text import Text

    for text, style in lines:
        if console.is_terminal:
            console.print(Text(text, style), soft_wrap=True)
        else:
            console.file.write(f"{text.rstrip()}\n")
