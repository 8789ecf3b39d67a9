"""Bytecode of a neighbour: taken where the source is the same, and nowhere else."""

import os
import py_compile
import shutil
import subprocess
import sys
from importlib.util import cache_from_source
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accel_micro.builds.bytecode import take_over

LIBRARY = "lib/python3/site-packages"
TEXT = "def answer():\n    return 42\n"


def module(environment: Path, text: str, *, seconds: float, name: str = "package/module.py") -> Path:
    """A module in an environment, written so many seconds after 2020."""
    path = environment / LIBRARY / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    os.utime(path, (1577836800 + seconds, 1577836800 + seconds))
    return path


def compiled(
    path: Path, mode: py_compile.PycInvalidationMode = py_compile.PycInvalidationMode.TIMESTAMP
) -> Path:
    return Path(str(py_compile.compile(str(path), doraise=True, invalidation_mode=mode)))


def imported(path: Path) -> subprocess.CompletedProcess[str]:
    """A Python that imports the module, says where it is from, and what it compiled."""
    code = "import package.module as m; print(m.answer(), m.answer.__code__.co_filename)"
    return subprocess.run(
        [sys.executable, "-v", "-B", "-c", code],
        env={"PYTHONPATH": str(path.parent.parent)},
        capture_output=True,
        text=True,
        check=True,
    )


def test_python_takes_it_for_its_own(tmp_path: Path) -> None:
    """It is loaded and not compiled, and says of itself where its own source lies."""
    compiled(module(tmp_path / "old", TEXT, seconds=1))
    mine = module(tmp_path / "new", TEXT, seconds=2)
    assert f"# code object from {mine}" in imported(mine).stderr
    assert take_over(tmp_path / "new", tmp_path / "old") == 1
    shutil.rmtree(tmp_path / "old")
    done = imported(mine)
    assert done.stdout.split() == ["42", str(mine)]
    assert f"matches {mine}" in done.stderr
    assert f"# code object from {mine}" not in done.stderr
    assert take_over(tmp_path / "new", tmp_path / "old") == 0


@given(change=st.sampled_from(["41", "43", "4", "142"]), seconds=st.integers(0, 3))
def test_another_source_is_never_run(
    tmp_path_factory: pytest.TempPathFactory, change: str, seconds: int
) -> None:
    """Whatever its length and time, those of the neighbour's included."""
    tmp_path = tmp_path_factory.mktemp("environments")
    compiled(module(tmp_path / "old", TEXT, seconds=1))
    mine = module(tmp_path / "new", TEXT.replace("42", change), seconds=seconds)
    assert take_over(tmp_path / "new", tmp_path / "old") == 0
    assert not Path(cache_from_source(str(mine))).exists()


def test_bytecode_that_is_not_of_its_source_is_left(tmp_path: Path) -> None:
    """The neighbour's source was replaced after it was compiled; or is not held against its bytecode by time."""
    compiled(module(tmp_path / "old", TEXT.replace("42", "41"), seconds=1))
    module(tmp_path / "old", TEXT, seconds=3)
    module(tmp_path / "new", TEXT, seconds=2)
    assert take_over(tmp_path / "new", tmp_path / "old") == 0
    compiled(tmp_path / "old" / LIBRARY / "package/module.py", py_compile.PycInvalidationMode.UNCHECKED_HASH)
    assert take_over(tmp_path / "new", tmp_path / "old") == 0


def test_what_is_there_stays_and_what_is_not_costs_nothing(tmp_path: Path) -> None:
    own = compiled(module(tmp_path / "new", TEXT, seconds=2))
    before = own.read_bytes()
    compiled(module(tmp_path / "old", TEXT, seconds=1))
    compiled(module(tmp_path / "old", TEXT, seconds=1, name="gone/module.py"))
    (tmp_path / "old" / LIBRARY / "package/__pycache__/torn.cpython-311.pyc").write_bytes(b"torn")
    module(tmp_path / "old", "", seconds=1, name="package/torn.py")
    module(tmp_path / "new", "", seconds=1, name="package/torn.py")
    assert take_over(tmp_path / "new", tmp_path / "old") == 0
    assert own.read_bytes() == before
    assert take_over(tmp_path / "new", tmp_path / "nowhere") == 0
