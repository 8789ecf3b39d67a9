import subprocess
import sys
from pathlib import Path

import pytest

from accel_micro.builds import TorchNotInstalled, installed_torch
from accel_micro.builds.installed import read_constants

VERSION_FILE = """
from typing import Optional
__all__ = ['__version__']
__version__ = '2.14.0.dev20261105+cu130'
debug = False
cuda: Optional[str] = '13.0'
git_version = 'cf30153c4c131c8164ee7798e5022d810682e2cb'
hip: Optional[str] = None
"""


def test_agrees_with_torch_itself() -> None:
    import torch

    found = installed_torch()
    assert found.version == torch.__version__
    assert found.build.git_version == torch.version.git_version
    assert (found.cuda, found.hip) == (torch.version.cuda, torch.version.hip)


def test_another_interpreter_is_asked(tmp_path: Path) -> None:
    python = tmp_path / "python"
    python.symlink_to(
        sys.executable
    )  # another name, the same interpreter: it is run, not asked in this process
    (tmp_path / "pyvenv.cfg").write_text((Path(sys.prefix) / "pyvenv.cfg").read_text())
    with pytest.raises(TorchNotInstalled, match="has no torch; install it"):
        installed_torch(python)
    package = tmp_path / "torch"
    package.mkdir()
    (package / "__init__.py").write_text("raise RuntimeError('imported')")
    (package / "version.py").write_text(VERSION_FILE)
    found = installed_torch(python)
    assert (found.version, found.cuda, found.hip) == ("2.14.0.dev20261105+cu130", "13.0", None)
    assert found.build.id.startswith("20261105")


def test_torch_is_not_imported() -> None:
    code = "import sys, accel_micro.builds as b; b.installed_torch(); print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_what_is_no_interpreter_is_named(tmp_path: Path) -> None:
    with pytest.raises(TorchNotInstalled, match="not a Python interpreter"):
        installed_torch(tmp_path / "nothing")
    with pytest.raises(TorchNotInstalled, match="not a Python interpreter"):
        installed_torch("/bin/true")


@pytest.mark.parametrize(
    ("source", "message"), [("x = 1", "names no version"), ("def", "without a readable version")]
)
def test_a_broken_torch_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str, message: str
) -> None:
    (tmp_path / "version.py").write_text(source)
    monkeypatch.setattr("accel_micro.builds.installed._origin_here", lambda: str(tmp_path / "__init__.py"))
    with pytest.raises(TorchNotInstalled, match=message):
        installed_torch()


def test_constants_are_read_without_running_anything() -> None:
    assert read_constants("a = 'x'\nb: str = 'y'\nc = d = 'z'\ne = f()\nraise SystemExit") == {
        "a": "x",
        "b": "y",
        "c": "z",
        "d": "z",
    }
