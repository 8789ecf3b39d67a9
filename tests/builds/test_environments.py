"""Environments made by the real uv, of wheels that hold nothing: no test here needs a network."""

import http.server
import json
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
import zipfile
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from accel_micro.builds import Place
from accel_micro.builds.environments import Environments
from accel_micro.builds.installing import Broken, DefectiveWheel, NotInstalled, same_version
from accel_micro.builds.interpreters import Interpreter, NoInterpreter, find_interpreter
from tests.builds.fake_torch import GIT, HERE, wheel_of, write_wheel


@pytest.fixture
def said() -> list[str]:
    return []


@pytest.fixture
def store(tmp_path: Path, said: list[str], monkeypatch: pytest.MonkeyPatch) -> Environments:
    monkeypatch.delenv("UV_CACHE_DIR", raising=False)
    monkeypatch.setenv("UV_NO_INDEX", "1")
    monkeypatch.setenv("UV_HTTP_RETRIES", "0")
    return Environments(tmp_path / "env", beside=(), say=said.append)


def whole(store: Environments) -> list[str]:
    """Names of folders that look like environments, whether or not they say they are."""
    if not store.folder.exists():
        return []
    return sorted(
        path.name for path in store.folder.iterdir() if path.name not in (".locks", ".broken", ".uv-cache")
    )


def test_an_environment_is_made_once(store: Environments, tmp_path: Path, said: list[str]) -> None:
    wheel = wheel_of(write_wheel(tmp_path / "wheels"))
    assert store.find(wheel, HERE) is None
    with store.acquire(wheel, HERE) as made:
        assert made.made_now
        assert made.facts.version == "2.15.0.dev20261105+cpu"
        assert made.facts.git_version == GIT
        assert made.facts.uv_seconds > 0
        assert made.facts.own_bytes > 0
        done = subprocess.run(
            [made.python, "-c", "import torch; print(torch.__version__)"], capture_output=True
        )
        assert done.stdout.decode().strip() == wheel.version
    with store.acquire(wheel, HERE) as again:
        assert not again.made_now
        assert again.facts == made.facts
    assert [environment.name for environment in store] == [made.name] == whole(store)
    assert len([line for line in said if line.startswith("Installed torch 2.15.0.dev20261105+cpu in ")]) == 1


def test_builds_share_what_they_link(store: Environments, tmp_path: Path) -> None:
    ballast = {"torch/lib/big.so": os.urandom(3_000_000)}
    facts = []
    for day in (5, 6):
        path = write_wheel(tmp_path / "wheels", f"2.15.0.dev2026110{day}+cpu", more=ballast)
        with store.acquire(wheel_of(path), HERE) as made:
            facts.append(made.facts)
            assert (made.folder / "lib").exists()
    for fact in facts:
        assert fact.shared_bytes >= 3_000_000
        assert fact.own_bytes < 1_000_000


def test_what_one_build_compiled_the_next_does_not(store: Environments, tmp_path: Path) -> None:
    """Modules that they have in common: those that are imported, with torch and by whoever measures."""
    more = {
        "torch/_dynamo/__init__.py": b"import torch.common\n",
        "torch/common.py": b"x = 1\n",
        "torch/own.py": b"",
    }
    init = "from torch.version import __version__, git_version\nimport torch.own\n"
    made = []
    for day in (5, 6, 7):
        more["torch/own.py"] = f"x = {day}\n".encode()
        path = write_wheel(tmp_path / "wheels", f"2.15.0.dev2026110{day}+cpu", init=init, more=more)
        with store.acquire(wheel_of(path), HERE) as environment:
            made.append(environment.folder)
            if day == 5:
                marked = next(environment.folder.rglob("torch/__pycache__/common.*.pyc"))
                marked.write_bytes(marked.read_bytes() + b"by the first")  # marshal reads its own part only
    for folder in made[1:]:
        assert next(folder.rglob("torch/__pycache__/common.*.pyc")).read_bytes().endswith(b"by the first")
        assert not next(folder.rglob("torch/__pycache__/own.*.pyc")).read_bytes().endswith(b"by the first")
        assert next(folder.rglob("torch/_dynamo/__pycache__/__init__.*.pyc"))
        number = folder.name[7:8]
        done = subprocess.run(
            [folder / "bin/python", "-c", "import torch; print(torch.own.x)"], capture_output=True, check=True
        )
        assert done.stdout.decode().strip() == number


def test_what_would_be_made_otherwise_is_made_again(store: Environments, tmp_path: Path) -> None:
    wheel = wheel_of(write_wheel(tmp_path / "wheels"))
    store.acquire(wheel, HERE).release()
    other = replace(wheel, file_name=wheel.file_name.replace("-cp", "-1-cp", 1))
    assert store.find(other, HERE) is None
    assert store.find(replace(wheel, git_version="b" * 40), HERE) is None
    assert store.find(replace(wheel, git_version=GIT), HERE) is not None
    (store.folder / store.name(wheel, HERE) / "bin" / "python").unlink()
    assert store.find(wheel, HERE) is None
    with store.acquire(wheel, HERE) as made:
        assert made.made_now


@pytest.mark.parametrize(
    ("version", "options", "message"),
    [
        ("2.15.0.dev20261105+cpu", {"says": "2.14.0"}, r"its name says 2\.15.*torch\.__version__ says 2\.14\.0"),
        ("2.15.0.dev20261105+cpu", {"says": "2.15.0.dev20261105+cu130"}, "torch.__version__ says"),
        ("2.15.0.dev20261105+cpu", {"init": "raise OSError('libfoo.so.13: cannot open')"},
         r"torch cannot be imported: OSError: libfoo\.so\.13"),
        ("2.15.0.dev20261105+cpu", {"init": "import os; os.abort()"}, r"torch cannot be imported: it died of SIGABRT"),
        ("2.15.0.dev20261105+cpu", {"requires": ["torch==2.13.0"]}, "requirements are unsatisfiable|depends on"),
        ("2.15.0.dev20261105+cpu", {"git": "b" * 40}, "was made from PyTorch b{40}"),
    ],
)  # fmt: skip
def test_a_wheel_that_does_not_work_is_remembered(
    store: Environments, tmp_path: Path, said: list[str], version: str, options: dict[str, Any], message: str
) -> None:
    wheel = wheel_of(write_wheel(tmp_path / "wheels", version, **options), git=GIT)
    for _ in range(2):
        with pytest.raises(Broken, match=message):
            store.acquire(wheel, HERE)
    assert len([line for line in said if line.startswith("Installing")]) == 1, "the second time it is known"
    assert store.why_broken(wheel, HERE)
    assert whole(store) == [], "nothing half made is left"
    write_wheel(tmp_path / "wheels", version, git=GIT)
    with pytest.raises(Broken):
        store.acquire(wheel, HERE)
    with store.acquire(wheel, HERE, retry=True) as made:
        assert made.made_now
    assert store.why_broken(wheel, HERE) is None


@pytest.mark.parametrize("part", [0.0, 0.1, 0.5, 0.99])
def test_a_truncated_wheel_is_defective(store: Environments, tmp_path: Path, part: float) -> None:
    path = write_wheel(tmp_path / "wheels", more={"torch/data.bin": os.urandom(100_000)})
    content = path.read_bytes()
    path.write_bytes(content[: int(len(content) * part)])
    with pytest.raises(DefectiveWheel, match=r"Failed to read from zip file: |Failed to extract archive"):
        store.acquire(wheel_of(path), HERE)
    assert whole(store) == []


def test_the_hash_is_checked_when_known(store: Environments, tmp_path: Path) -> None:
    path = write_wheel(tmp_path / "wheels")
    right = sha256(path.read_bytes()).hexdigest()
    with pytest.raises(DefectiveWheel, match="Hash mismatch"):
        store.acquire(wheel_of(path, sha256="0" * 64), HERE)
    assert whole(store) == []
    with store.acquire(wheel_of(path, sha256=right), HERE) as made:
        assert made.facts.sha256 == right


def test_a_wheel_for_another_python_is_refused(store: Environments, tmp_path: Path) -> None:
    path = write_wheel(tmp_path / "wheels", tag="cp39-cp39-linux_x86_64")
    with pytest.raises(Broken, match="matching Python"):
        store.acquire(wheel_of(path), HERE)


def test_unobtainable_pins_are_left_out_and_recorded(
    store: Environments, tmp_path: Path, said: list[str]
) -> None:
    wheels = tmp_path / "wheels"
    path = write_wheel(
        wheels, requires=["triton==3.9.0+git12345678", "nvidia-nothing-cu13==13.0; python_version>'3'"]
    )
    with store.acquire(wheel_of(path), HERE) as made:
        assert set(made.facts.without) == {"triton", "nvidia-nothing-cu13"}
    assert any("pins triton to what is nowhere to be had: left out" in line for line in said)
    with store.acquire(wheel_of(path), HERE) as again:
        assert not again.made_now
    with store.acquire(wheel_of(path), HERE, retry=True) as retried:
        assert retried.made_now


def test_a_dependency_beside_the_wheel_is_found(store: Environments, tmp_path: Path) -> None:
    wheels = tmp_path / "wheels"
    path = write_wheel(wheels, requires=["triton==3.9.0+git12345678"])
    other = write_wheel(tmp_path / "made", "3.9.0+git12345678")
    renamed = wheels / other.name.replace("torch-", "triton-")
    _rename_project(other, renamed, "torch", "triton")
    with store.acquire(wheel_of(path), HERE) as made:
        assert made.facts.without == ()


def test_unreachable_is_not_broken(store: Environments, tmp_path: Path) -> None:
    wheel = wheel_of(write_wheel(tmp_path / "wheels"), url="http://127.0.0.1:9/torch.whl")
    wheel = replace(wheel, places=(Place(f"http://127.0.0.1:9/{wheel.file_name}", "http://127.0.0.1:9/"),))
    with pytest.raises(NotInstalled, match=r"127\.0\.0\.1:9") as caught:
        store.acquire(wheel, HERE)
    assert not caught.value.lasting
    assert store.why_broken(wheel, HERE) is None
    assert whole(store) == []


def test_another_place_is_tried(store: Environments, tmp_path: Path) -> None:
    path = write_wheel(tmp_path / "wheels")
    with _served(path.parent) as root:
        good = Place(f"{root}{path.name}", root)
        bad = Place(f"http://127.0.0.1:9/{path.name}", "http://127.0.0.1:9/")
        wheel = replace(wheel_of(path), places=(bad, good))
        with store.acquire(wheel, HERE) as made:
            assert made.facts.url == good.url
    gone = replace(wheel, places=())
    store.uv.run("cache", "clean", cwd=store.folder)
    with store.held_alone(made.name) as alone:
        assert alone
        store.remove(made.name)
    with pytest.raises(NotInstalled, match="nobody knows where"):
        store.acquire(gone, HERE)


def test_a_full_disk_gets_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk = tmp_path / "small"
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", disk], capture_output=True)
    if mounted.returncode:
        pytest.skip("a small file system cannot be mounted here")
    monkeypatch.setenv("UV_NO_INDEX", "1")
    monkeypatch.delenv("UV_CACHE_DIR", raising=False)
    try:
        store = Environments(disk / "env", beside=())
        big = wheel_of(write_wheel(tmp_path / "wheels", more={"torch/big.so": os.urandom(4_000_000)}))
        for _ in range(2):
            with pytest.raises(
                NotInstalled, match=r"the disk is full: .*No space left.*builds prune"
            ) as caught:
                store.acquire(big, HERE)
            assert not caught.value.lasting, "it fits when there is room"
        assert whole(store) == []
        assert os.statvfs(disk).f_bavail * os.statvfs(disk).f_bsize > 1_000_000, (
            "what was written is gone again"
        )
        small = wheel_of(write_wheel(tmp_path / "wheels", "2.15.0.dev20261106+cpu"))
        with store.acquire(small, HERE) as made:
            assert made.made_now
    finally:
        subprocess.run(["umount", disk], check=True)


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "env").write_text("a file")
    wheel = wheel_of(write_wheel(tmp_path / "wheels"))
    with pytest.raises(NotInstalled, match="cannot be"):
        Environments(tmp_path / "env", beside=()).acquire(wheel, HERE)


def _install_slowly(folder: Path, path: Path, started: Any) -> None:
    store = Environments(folder, beside=(), say=lambda line: started.set() if "Installing" in line else None)
    store.acquire(wheel_of(path), HERE)


def test_killed_while_installing_then_run_again(store: Environments, tmp_path: Path) -> None:
    # The import takes its time, so that the run is killed in the middle; the second time it does not.
    pace = tmp_path / "slow"
    pace.touch()
    init = (
        "import os, time\nfrom torch.version import __version__\n"
        f"while os.path.exists({str(pace)!r}): time.sleep(0.01)\n"
    )
    path = write_wheel(tmp_path / "wheels", init=init)
    context = multiprocessing.get_context("spawn")
    started = context.Event()
    process = context.Process(target=_install_slowly, args=(store.folder, path, started))
    process.start()
    assert started.wait(60)
    _wait_for(
        lambda: bool(list(store.folder.glob(".partial-*/lib/*/site-packages/torch/__pycache__/version*")))
    )
    assert process.pid is not None
    os.kill(process.pid, signal.SIGKILL)
    process.join()
    (leftover,) = store.leftovers()
    assert leftover[0] == store.name(wheel_of(path), HERE)
    with store.held_alone(leftover[0]) as alone:
        assert not alone, "what the killed run started is still at it, and holds the lock"
    pace.unlink()
    with store.acquire(wheel_of(path), HERE) as made:
        assert made.made_now
    assert whole(store) == [made.name]


def _acquire(folder: Path, path: Path, answers: Any) -> None:
    with Environments(folder, beside=()).acquire(wheel_of(path), HERE) as made:
        answers.put(made.made_now)


def test_two_runs_at_once_make_one_environment(store: Environments, tmp_path: Path) -> None:
    path = write_wheel(
        tmp_path / "wheels", init="import time; time.sleep(0.5)\nfrom torch.version import __version__\n"
    )
    context = multiprocessing.get_context("spawn")
    answers = context.Queue()
    processes = [context.Process(target=_acquire, args=(store.folder, path, answers)) for _ in range(2)]
    for process in processes:
        process.start()
    assert sorted(answers.get(timeout=60) for _ in processes) == [False, True]
    for process in processes:
        process.join(30)
        assert process.exitcode == 0
    assert len(whole(store)) == 1


def test_other_requirements_are_another_environment(store: Environments, tmp_path: Path) -> None:
    path = write_wheel(tmp_path / "wheels")
    more = Environments(store.folder, beside=("numpy==1.26.4",))
    assert more.name(wheel_of(path), HERE) != store.name(wheel_of(path), HERE)


def test_interpreters() -> None:
    assert find_interpreter().path == Path(sys.executable)
    assert find_interpreter(sys.executable) == find_interpreter()
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    assert find_interpreter(version).python.rstrip("t") == version
    assert Interpreter(Path("python"), "3.13t").tag == "cp313t"
    with pytest.raises(NoInterpreter, match=r"no Python 3\.1 was found"):
        find_interpreter("3.1")
    with pytest.raises(NoInterpreter, match="not a Python interpreter"):
        find_interpreter("/bin/true")


@pytest.mark.parametrize(
    ("name", "said", "same"),
    [
        ("2.8.0", "2.8.0+cu128", True),
        ("2.13.0+cpu", "2.13.0+cpu", True),
        ("2.6.0+cpu.cxx11.abi", "2.6.0+cpu", True),
        ("2.13.0+cpu", "2.13.0", True),
        ("2.13.0+cpu", "2.13.0+cu130", False),
        ("2.13.0", "2.13.1", False),
        ("weird", "weird", True),
        ("weird", "2.0", False),
    ],
)
def test_versions_that_may_be_one(name: str, said: str, same: bool) -> None:
    assert same_version(name, said) == same


def test_a_torn_memory_of_what_is_broken_is_no_obstacle(store: Environments, tmp_path: Path) -> None:
    wheel = wheel_of(write_wheel(tmp_path / "wheels"))
    broken = store.folder / ".broken"
    broken.mkdir(parents=True)
    (broken / f"{store.name(wheel, HERE)}.json").write_text('{"file": [')
    with store.acquire(wheel, HERE) as made:
        (made.folder / "accel-micro.json").write_text(json.dumps({"schema": 99}))
    with store.acquire(wheel, HERE) as made:
        assert made.made_now


def _wait_for(condition: Any) -> None:
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.01)


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


class _served:
    """A folder by http."""

    def __init__(self, folder: Path) -> None:
        self.server = http.server.ThreadingHTTPServer(
            ("127.0.0.1", 0), lambda *a, **k: _Quiet(*a, directory=str(folder), **k)
        )

    def __enter__(self) -> str:
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return f"http://127.0.0.1:{self.server.server_address[1]}/"

    def __exit__(self, *_: object) -> None:
        self.server.shutdown()
        self.server.server_close()


def _rename_project(source: Path, target: Path, old: str, new: str) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(source) as before, zipfile.ZipFile(target, "w") as after:
        for name in before.namelist():
            content = before.read(name)
            if name.endswith(("METADATA", "RECORD")):
                content = content.replace(f"Name: {old}".encode(), f"Name: {new}".encode())
                content = content.replace(f"{old}".encode(), f"{new}".encode())
            after.writestr(name.replace(old, new), content)
