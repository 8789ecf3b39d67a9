"""`asv publish` for pages that open without internet.

asv's own page loads its scripts from content networks. asv-tachyon's lies beside the data; a browser lets it
read them only from a server, so `accel-micro` and `asv preview` serve the folder.
"""

import contextlib
import html
import io
from collections.abc import Callable, Iterable
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Final

from asv.commands.publish import Publish
from asv.console import log

from accel_micro.asv_plugin import patching
from accel_micro.builds import Build, Ledger

_COMMITS: Final = "https://github.com/pytorch/pytorch/commit/"
_HINT: Final = """<script>
if (location.protocol === "file:") document.body.textContent =
  "A browser lets no file read another, so this page needs a server: run `asv preview`, or " +
  "`python -m http.server` in this folder and open http://localhost:8000.";
</script>
"""
_BUILDS_PAGE: Final = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>Builds of torch</title>
<style>
body {{ font: 15px/1.5 system-ui, sans-serif; margin: 2em; }}
td, th {{ padding: .2em 1em .2em 0; text-align: left; }}
tr:target {{ background: #fe9; }}
</style>
<h1>Builds of torch</h1>
<table>
<tr><th>Build<th>Version<th>Channel<th>Date or first seen<th>PyTorch commit</tr>
{rows}
</table>
</html>
"""


def install() -> None:
    """Put asv-tachyon's page over each published one."""

    def make(original: Callable[..., Any]) -> Callable[..., Any]:
        def run(cls: Any, conf: Any, **options: Any) -> Any:
            code = original(cls, conf, **options)
            if not code:
                make_offline(Path(conf.html_dir))
                write_builds(Path(conf.html_dir), Ledger.beside(Path(conf.results_dir)))
            return code

        return run

    patching.replace(Publish, "run", make, takes=("conf", "range_spec", "pull"))


def make_offline(html_folder: Path) -> None:
    """Replace the page in a published folder by one that needs no other server. asv's data stay."""
    from asv_tachyon.cli import cmd_install

    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        cmd_install(html_folder, backup=False)
    log.debug(said.getvalue())
    index = html_folder / "index.html"
    index.write_text(
        index.read_text(encoding="utf-8").replace("</body>", f"{_HINT}</body>"), encoding="utf-8"
    )


def write_builds(html_folder: Path, builds: Iterable[Build]) -> None:
    """Write `builds.html`, where asv's page looks a commit up: which PyTorch commit each build was made from."""
    rows = []
    for build in builds:
        day = "" if build.date_milliseconds is None else _day(build.date_milliseconds)
        commit = html.escape(build.git_version or "")
        link = f'<a href="{_COMMITS}{commit}">{commit}</a>' if commit else "not known"
        cells = (build.id[:8], build.version, build.channel, day)
        row = "".join(f"<td>{html.escape(cell)}</td>" for cell in cells)
        rows.append(f'<tr id="{html.escape(build.id)}">{row}<td>{link}</td></tr>')
    page = _BUILDS_PAGE.format(rows="\n".join(reversed(rows)))
    (html_folder / "builds.html").write_text(page, encoding="utf-8")


def _day(milliseconds: int) -> str:
    return datetime.fromtimestamp(milliseconds / 1000, timezone.utc).date().isoformat()
