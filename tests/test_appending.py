import os
from pathlib import Path

import pytest

from accel_micro.appending import append_text


def test_lines_follow_each_other_and_one_cut_short_takes_none_along(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    append_text(path, "one\ntwo\n")
    with path.open("a") as file:
        file.write("cut sho")
    append_text(path, "three\n")
    append_text(path, "four\n", durable=True)
    assert path.read_text() == "one\ntwo\ncut sho\nthree\nfour\n"


def test_no_text_makes_no_file(tmp_path: Path) -> None:
    append_text(tmp_path / "lines", "")
    assert list(tmp_path.iterdir()) == []


def test_what_the_system_takes_in_pieces_is_written_to_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "lines"
    append_text(path, "zero\n")
    write = os.write
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", lambda handle, data: write(handle, data[:2]))
        append_text(path, "one\ntwo\n")
        assert path.read_text() == "zero\none\ntwo\n"
        with pytest.raises(OSError, match="no room for"):
            append_text(path, "three\n", durable=True)
    assert path.read_text() == "zero\none\ntwo\n"


def test_a_folder_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        append_text(tmp_path / "none" / "lines", "one\n")
