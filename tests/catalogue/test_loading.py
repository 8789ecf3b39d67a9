"""Folders of families, good and broken."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from accel_micro.catalogue import NotASuite, load

OPS = """
import torch
from accel_micro.suite import op

@op(quick=["n=1"])
def second(t, n):
    x = t(n)
    return lambda: torch.exp(x)

@op(quick=["n=1"])
def first(t, n):
    x = t(n)
    return lambda: torch.exp(x)
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setattr(sys, "path", list(sys.path))
    path = tmp_path / "a_suite_of_ops"
    path.mkdir()
    (path / "__init__.py").write_text("")
    yield path
    for name in [name for name in sys.modules if name.startswith("a_suite_of_ops")]:
        del sys.modules[name]


def test_families_come_by_name_and_ops_as_they_are_defined(folder: Path) -> None:
    (folder / "waves.py").write_text(OPS)
    (folder / "arms.py").write_text(OPS + "\nfrom a_suite_of_ops.waves import second as imported\n")
    (folder / "tool.py").write_text("number = 3")
    assert [cls.op.name for cls in load(folder)] == [
        "arms.second",
        "arms.first",
        "waves.second",
        "waves.first",
    ]


def test_what_cannot_be_imported_is_named(folder: Path) -> None:
    (folder / "broken.py").write_text("import nothing_of_that_name")
    with pytest.raises(
        NotASuite, match=r"a_suite_of_ops\.broken cannot be imported: ModuleNotFoundError: No module"
    ):
        load(folder)


def test_a_folder_that_is_no_package_is_no_suite(tmp_path: Path) -> None:
    with pytest.raises(NotASuite, match=r"has no __init__\.py"):
        load(tmp_path)


def test_the_suite_of_this_project_is_one() -> None:
    names = [cls.op.name for cls in load(Path(__file__).parents[2] / "benchmarks")]
    assert {"matmul.mm", "fft.rfft", "optimizer.adam"} <= set(names)
    assert len(set(names)) == len(names)
