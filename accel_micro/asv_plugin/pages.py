"""`asv publish` for pages that open without internet.

asv's own page loads its scripts from content networks. asv-tachyon's lies beside the data; a browser lets it
read them only from a server, so `accel-micro` and `asv preview` serve the folder.
"""

import contextlib
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

from asv.commands.publish import Publish
from asv.console import log

from accel_micro.asv_plugin import patching


def install() -> None:
    """Put asv-tachyon's page over each published one."""

    def make(original: Callable[..., Any]) -> Callable[..., Any]:
        def run(cls: Any, conf: Any, **options: Any) -> Any:
            code = original(cls, conf, **options)
            if not code:
                make_offline(Path(conf.html_dir))
            return code

        return run

    patching.replace(Publish, "run", make, takes=("conf", "range_spec", "pull"))


def make_offline(html: Path) -> None:
    """Replace the page in a published folder by one that needs no other server. asv's data stay."""
    from asv_tachyon.cli import cmd_install

    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        cmd_install(html, backup=False)
    log.debug(said.getvalue())
