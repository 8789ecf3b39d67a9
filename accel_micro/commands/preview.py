"""`accel-micro preview`: serve the published pages on this machine. Browsers let no page from disk read its data."""

from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final

ADDRESS: Final = "127.0.0.1"


class _Quiet(SimpleHTTPRequestHandler):
    """Serves files and logs nothing."""

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""


def server(folder: Path, port: int) -> ThreadingHTTPServer:
    """A server of that folder on the loopback address, not yet serving. Port 0 takes a free one.

    Raises:
        OSError: the port is taken.
    """
    return ThreadingHTTPServer((ADDRESS, port), partial(_Quiet, directory=str(folder)))


def serve(config: Path | None, out: Path | None, port: int) -> None:
    """Serve the pages of a configuration until Ctrl-C.

    Raises:
        SessionError: nothing was published yet, or the port is taken.
    """
    from accel_micro.asv_plugin.session import ENVIRONMENT, SessionError, pages

    folder = pages(config, html=None if out is None else out / "html")
    if not (folder / "index.html").is_file():
        raise SessionError(
            f"{folder} holds no pages yet; run `accel-micro quick` or `asv publish`", ENVIRONMENT
        )
    try:
        serving = server(folder, port)
    except OSError as error:
        raise SessionError(f"port {port} cannot be used: {error.strerror}", ENVIRONMENT) from None
    with serving:
        print(f"http://{ADDRESS}:{serving.server_port}/ serves {folder}; Ctrl-C ends it.", flush=True)
        try:
            serving.serve_forever()
        except KeyboardInterrupt:
            print()
