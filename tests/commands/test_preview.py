"""Pages are served on this machine alone."""

import threading
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from accel_micro.asv_plugin.session import SessionError
from accel_micro.commands import preview


def test_pages_are_served_from_the_loopback_address(tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text("<p>pages")
    with preview.server(tmp_path, 0) as serving:
        assert serving.server_address[0] == "127.0.0.1"
        thread = threading.Thread(target=serving.serve_forever)
        thread.start()
        try:
            address = f"http://127.0.0.1:{serving.server_port}/"
            with urllib.request.urlopen(address) as answer:
                assert answer.read() == b"<p>pages"
            with pytest.raises(urllib.error.HTTPError) as missing:
                urllib.request.urlopen(f"{address}none")
            missing.value.close()
        finally:
            serving.shutdown()
            thread.join()


def test_nothing_published_yet_is_said(tmp_path: Path) -> None:
    with pytest.raises(SessionError, match="holds no pages yet; run `accel-micro quick`") as error:
        preview.serve(None, tmp_path, 0)
    assert error.value.exit_code == 3


def test_a_port_that_is_taken_is_said(tmp_path: Path) -> None:
    (tmp_path / "html").mkdir()
    (tmp_path / "html" / "index.html").write_text("")
    with preview.server(tmp_path, 0) as other, pytest.raises(SessionError, match="cannot be used"):
        preview.serve(None, tmp_path, other.server_port)
