"""`asv publish` for pages that open without internet.

asv's own page loads its scripts from content networks. asv-tachyon's lies beside the data; a browser lets it
read them only from a server, so `accel-micro` and `asv preview` serve the folder. The pages of `report.site` lie
beside it, and need neither.
"""

import contextlib
import io
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from asv.commands.publish import Publish
from asv.console import log

from accel_micro.asv_plugin import patching
from accel_micro.asv_plugin.config import CROSSOVER, REPORT

INDEX: Final = "index.html"

_HINT: Final = """<a href="overview.html" style="position: fixed; right: 12px; bottom: 12px; z-index: 9;
 padding: 6px 12px; border: 1px solid #8888; border-radius: 8px; background: Canvas; color: LinkText;
 color-scheme: light dark; font: 14px system-ui, sans-serif">Verdicts and histories</a>
<script>
if (location.protocol === "file:") {
  const said = document.createElement("p"), link = document.createElement("a");
  said.textContent = "A browser lets no file read another, so this page needs a server: " +
    "run `accel-micro preview`, or `python -m http.server` in this folder and open http://localhost:8000. " +
    "What needs none: ";
  link.href = "overview.html";
  link.textContent = "verdicts and histories";
  said.append(link, ".");
  document.body.replaceChildren(said);
}
</script>
"""


def install() -> None:
    """Put asv-tachyon's page over each published one, and ours beside it."""

    def make(original: Callable[..., Any]) -> Callable[..., Any]:
        def run(cls: Any, conf: Any, **options: Any) -> Any:
            with _kept(Path(conf.html_dir)):
                # What is published was measured, so it is known: no index need be asked.
                code = original(cls, conf, **{**options, "pull": False})
            if not code:
                make_offline(Path(conf.html_dir))
                _write_site(Path(conf.html_dir), Path(conf.results_dir))
            return code

        return run

    patching.replace(Publish, "run", make, takes=("conf", "range_spec", "pull"))


@contextlib.contextmanager
def _kept(html_folder: Path) -> Iterator[None]:
    """Pages that no result can make again: asv makes the folder anew, or fails after it has emptied it."""
    from accel_micro.report.site import EXPLANATIONS

    ours = [html_folder / REPORT, html_folder / CROSSOVER, *(html_folder / EXPLANATIONS).glob("*.html")]
    kept = {page: page.read_bytes() for page in ours if page.is_file()}
    try:
        yield
    finally:
        for page, content in kept.items():
            page.parent.mkdir(parents=True, exist_ok=True)
            page.write_bytes(content)


def _write_site(html_folder: Path, results: Path) -> None:
    from accel_micro.report.site import write_site

    written = write_site(html_folder, results)
    for problem in written.problems:
        log.warning(problem)
    log.info(f"Verdicts and histories, which open without a server: {written.first}")


def make_offline(html_folder: Path) -> None:
    """Replace the page in a published folder by one that needs no other server. asv's data stay."""
    from asv_tachyon.cli import cmd_install

    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        cmd_install(html_folder, backup=False)
    log.debug(said.getvalue())
    index = html_folder / INDEX
    index.write_text(
        index.read_text(encoding="utf-8").replace("</body>", f"{_HINT}</body>"), encoding="utf-8"
    )
