"""`asv publish` for pages that open without internet.

asv's own page loads its scripts from content networks. asv-tachyon's lies beside the data; a browser lets it
read them only from a server, so `accel-micro` and `asv preview` serve the folder.
"""

import contextlib
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from asv.commands.publish import Publish
from asv.console import log

from accel_micro.asv_plugin import builds_page, patching
from accel_micro.asv_plugin.config import REPORT

_HINT: Final = """<script>
if (location.protocol === "file:") document.body.textContent =
  "A browser lets no file read another, so this page needs a server: run `accel-micro preview`, or " +
  "`python -m http.server` in this folder and open http://localhost:8000.";
</script>
"""


def install() -> None:
    """Put asv-tachyon's page over each published one."""

    def make(original: Callable[..., Any]) -> Callable[..., Any]:
        def run(cls: Any, conf: Any, **options: Any) -> Any:
            report = Path(conf.html_dir) / REPORT
            kept = report.read_bytes() if report.is_file() else None  # asv makes the folder anew
            # What is published was measured, so it is known: no index need be asked.
            code = original(cls, conf, **{**options, "pull": False})
            if kept is not None and report.parent.is_dir():
                report.write_bytes(kept)
            if not code:
                make_offline(Path(conf.html_dir))
                builds_page.write(Path(conf.html_dir), Path(conf.results_dir))
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
