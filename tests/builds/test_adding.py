import subprocess
import sys
from pathlib import Path

import pytest

from accel_micro.builds import ChangedFile, Ledger, TorchNotInstalled, installed_torch
from accel_micro.builds.adding import add_interpreter, add_wheel, find_python
from accel_micro.builds.contents import BrokenWheel, sha256_of
from accel_micro.builds.wheels import NotAWheel
from tests.builds.fake_torch import GIT, write_wheel

VERSION = "2.15.0a0+git1234567"


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger.beside(tmp_path / "results")


def test_a_wheel_of_ones_own(ledger: Ledger, tmp_path: Path) -> None:
    path = write_wheel(tmp_path, VERSION)
    build, wheel = add_wheel(ledger, path)
    assert (build.id, build.channel) == (GIT, "local")
    assert (wheel.sha256, wheel.urls) == (sha256_of(path), [path.as_uri()])
    assert add_wheel(ledger, path) == (build, wheel)
    known = Ledger(ledger.path)
    assert known.resolve(GIT[:8]) == build
    assert known.wheels(build.id) == [wheel]


def test_another_wheel_of_that_name(ledger: Ledger, tmp_path: Path) -> None:
    add_wheel(ledger, write_wheel(tmp_path, VERSION))
    path = write_wheel(tmp_path, VERSION, init="changed = True\n")
    with pytest.raises(ChangedFile, match="is not the file it was"):
        add_wheel(ledger, path)
    _, wheel = add_wheel(ledger, path, accept=True)
    assert (wheel.sha256, wheel.replaced) == (sha256_of(path), 1)
    assert add_wheel(Ledger(ledger.path), path)[1] == wheel


def test_a_rebuilt_wheel_of_another_commit(ledger: Ledger, tmp_path: Path) -> None:
    add_wheel(ledger, write_wheel(tmp_path, VERSION))
    path = write_wheel(tmp_path, VERSION, git="b" * 40)
    build, wheel = add_wheel(ledger, path, accept=True)
    assert build.id == wheel.build_id == "b" * 40
    known = Ledger(ledger.path)
    assert known.wheels("b" * 40) == [wheel]
    assert known.wheels(GIT) == []


def test_a_dry_run_writes_nothing(ledger: Ledger, tmp_path: Path) -> None:
    build, _ = add_wheel(ledger, write_wheel(tmp_path, VERSION), dry_run=True)
    assert build.id == GIT
    add_interpreter(ledger, Path(sys.executable), dry_run=True)
    assert not ledger.path.exists()


def test_files_that_are_no_wheel(ledger: Ledger, tmp_path: Path) -> None:
    path = write_wheel(tmp_path, VERSION)
    path.write_bytes(path.read_bytes()[:200])
    with pytest.raises(BrokenWheel):
        add_wheel(ledger, path)
    with pytest.raises(NotAWheel):
        add_wheel(ledger, tmp_path / "torch.whl")
    with pytest.raises(BrokenWheel, match="cannot be read"):
        add_wheel(ledger, tmp_path / "torch-1.0-py3-none-any.whl")
    assert not ledger.path.exists()


def test_the_torch_of_an_environment(ledger: Ledger, tmp_path: Path) -> None:
    folder = tmp_path / "environment"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    with pytest.raises(TorchNotInstalled, match="has no torch"):
        add_interpreter(ledger, folder)
    packages = next(folder.glob("lib/python*/site-packages"))
    (packages / "torch").mkdir()
    (packages / "torch" / "__init__.py").touch()
    (packages / "torch" / "version.py").write_text(f"__version__ = {VERSION!r}\ngit_version = {GIT!r}\n")
    build, installed = add_interpreter(ledger, folder)
    assert (build.id, installed.version) == (GIT, VERSION)
    (found,) = Ledger(ledger.path).installations(GIT)
    assert found.python == str(folder / "bin" / "python")
    assert installed_torch(found.python).build.id == GIT


def test_paths_that_are_no_interpreter(ledger: Ledger, tmp_path: Path) -> None:
    assert find_python(Path(sys.executable)) == Path(sys.executable)
    with pytest.raises(TorchNotInstalled, match="is no environment: it has no bin/python"):
        add_interpreter(ledger, tmp_path)
    with pytest.raises(TorchNotInstalled, match="give a wheel, an interpreter or an environment's folder"):
        add_interpreter(ledger, tmp_path / "nothing")
    (tmp_path / "file").touch()
    with pytest.raises(TorchNotInstalled, match="not a Python interpreter that runs"):
        add_interpreter(ledger, tmp_path / "file")
