"""Draw the README's pictures from the records beside this file, those of a run on an H100: python docs/picture.py

Writes quick.svg, the table of the terminal, and report.png, the top of the page in Chromium.
"""

import io
import re
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from accel_micro import report
from accel_micro.builds.identity import from_id
from accel_micro.measure.records import Record, read_all
from accel_micro.report.html import write_html

WIDTH = 140
PAGE = {"width": 1120, "height": 640}
CHROMIUM = "/usr/bin/chromium"
HERE = Path(__file__).parent
_FONT_FACE = re.compile(r"\s*@font-face \{.*?\}", re.DOTALL)


def records() -> list[Record]:
    """The processes in the pictures, with versions in place of ids, as `accel-micro quick` shows them."""
    return [replace(record, build=from_id(record.build).version) for record in read_all(HERE)]


def draw_table(shown: Sequence[Record], path: Path) -> None:
    """The table as SVG. Rich would have it load a font from the network; the viewer's own will do."""
    console = Console(record=True, width=WIDTH, file=io.StringIO(), highlight=False, force_terminal=True)
    report.render(shown, console=console)
    svg = console.export_svg(title="accel-micro quick", unique_id="quick")
    svg = _FONT_FACE.sub("", svg).replace("Fira Code", "ui-monospace, Menlo, Consolas, DejaVu Sans Mono")
    path.write_text("\n".join(line.rstrip() for line in svg.splitlines()) + "\n", encoding="utf-8")


def draw_page(shown: Sequence[Record], path: Path) -> None:
    """The top of the page as PNG."""
    from playwright.sync_api import sync_playwright

    title = f"torch {shown[0].build}"
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        html = Path(folder) / "report.html"
        write_html(html, shown, facts={}, findings=[], title=title, asv_page=None, profile="quick")
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page(viewport=PAGE, color_scheme="light")
        page.goto(html.as_uri())
        page.screenshot(path=path)
        browser.close()


if __name__ == "__main__":
    draw_table(records(), HERE / "quick.svg")
    draw_page(records(), HERE / "report.png")
