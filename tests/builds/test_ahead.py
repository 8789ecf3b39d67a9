"""Environments made ahead: in the background, paused at once, and never outliving who asked for them."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from accel_micro.builds import ahead as making
from accel_micro.builds.ahead import Ahead, Job
from accel_micro.builds.environments import Environments
from tests.builds.fake_torch import HERE, wheel_of, write_wheel

# Notes the time as fast as it can, itself and by a child, as an installer does; ends when the file `stop` is there.
INSTALLER = """
import json, os, pathlib, subprocess, sys, time
folder = pathlib.Path(json.load(sys.stdin)["folder"])
child = '''
import pathlib, sys, time
folder = pathlib.Path(sys.argv[1])
while not (folder / "stop").exists():
    with open(folder / "beats", "a") as file: print(time.monotonic(), sys.argv[2], file=file)
    time.sleep(0.002)
'''
other = subprocess.Popen([sys.executable, "-c", child, folder, "child"])
sys.argv[1:] = [str(folder), "self"]
(folder / "pids").write_text(f"{os.getpid()} {other.pid}")
exec(child)
sys.exit(other.wait() or (folder / "fails").exists())
"""


@pytest.fixture(autouse=True)
def _room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(making, "LEAST_FREE_BYTES", 0)
    monkeypatch.setenv("UV_NO_INDEX", "1")
    monkeypatch.delenv("UV_CACHE_DIR", raising=False)


@pytest.fixture
def jobs(tmp_path: Path) -> Callable[..., list[Job]]:
    (tmp_path / "env").mkdir()

    def of(*days: int) -> list[Job]:
        store = Environments(tmp_path / "env", beside=())
        return [
            Job(store, wheel_of(write_wheel(tmp_path / "wheels", f"2.15.0.dev202611{day:02}+cpu")), HERE)
            for day in days
        ]

    return of


@pytest.fixture
def fake(tmp_path: Path) -> Iterator[Ahead]:
    script = tmp_path / "installer.py"
    script.write_text(INSTALLER)
    ahead = Ahead(command=(sys.executable, str(script)))
    yield ahead
    ahead.close()


def beats(folder: Path) -> list[str]:
    path = folder / "env" / "beats"
    return path.read_text().splitlines() if path.exists() else []


def wait_for(condition: Callable[[], object]) -> None:
    end = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.01)


def both_beat(folder: Path, since: int = 0) -> bool:
    return {line.split()[-1] for line in beats(folder)[since:]} == {"self", "child"}


def test_a_pause_stops_all_of_it_at_once_and_going_on_goes_on(
    fake: Ahead, jobs: Callable[..., list[Job]], tmp_path: Path
) -> None:
    fake.want(jobs(1))
    for _ in range(3):
        known = len(beats(tmp_path))
        wait_for(lambda known=known: both_beat(tmp_path, known))
        fake.pause()
        before = beats(tmp_path)
        time.sleep(0.1)
        assert beats(tmp_path) == before, "something ran beside a block"
        fake.pause()  # once more changes nothing
        fake.go_on()
    (tmp_path / "env" / "stop").touch()
    fake.finish(jobs(1)[0].name)
    assert fake.made == {jobs(1)[0].name}
    assert fake.taken(jobs(1)[0].name) and not fake.taken(jobs(1)[0].name)


# Starts a child, and the next, as fast as it can: it is often stopped while it waits for one that was stopped as well.
BREEDER = """
import json, os, pathlib, subprocess, sys
folder = pathlib.Path(json.load(sys.stdin)["folder"])
while not (folder / "stop").exists():
    subprocess.run(["true"], close_fds=False)
    with open(folder / "beats", "a") as file: print("self", file=file)
"""


def test_who_is_stopped_while_it_starts_a_child_stops_all_the_same(
    jobs: Callable[..., list[Job]], tmp_path: Path
) -> None:
    script = tmp_path / "breeder.py"
    script.write_text(BREEDER)
    ahead = Ahead(command=(sys.executable, str(script)))
    ahead.want(jobs(1))
    try:
        for _ in range(100):
            known = len(beats(tmp_path))
            wait_for(lambda known=known: len(beats(tmp_path)) > known)
            ahead.pause()
            before = beats(tmp_path)
            time.sleep(0.002)
            assert beats(tmp_path) == before
            ahead.go_on()
    finally:
        ahead.close()


def test_one_is_made_after_the_other_and_what_is_needed_is_waited_for(
    fake: Ahead, jobs: Callable[..., list[Job]], tmp_path: Path
) -> None:
    first, second = jobs(1, 2)
    fake.want([first, second])
    wait_for(lambda: both_beat(tmp_path))
    fake.pause()
    fake.finish(second.name)  # it has not begun: whoever needs it makes it
    assert fake.made == set()
    (tmp_path / "env" / "stop").touch()
    fake.finish(first.name)  # though it was paused
    assert fake.made == {first.name}
    fake.go_on()
    wait_for(lambda: (fake.pause(), second.name in fake.made)[1] or fake.go_on())


def test_what_fails_is_tried_twice_and_left_to_who_needs_it(
    fake: Ahead, jobs: Callable[..., list[Job]], tmp_path: Path
) -> None:
    (job,) = jobs(1)
    for name in ("stop", "fails"):
        (tmp_path / "env" / name).touch()
    begun: list[str] = []
    fake._say = begun.append
    for _ in range(4):
        fake.want([job])
        fake.finish(job.name)
    assert len(begun) == 2 and "torch 2.15.0.dev20261101+cpu ready ahead" in begun[0]
    assert fake.made == set()


def test_no_more_than_a_few_are_made_that_nobody_needs_yet_and_none_on_a_full_disk(
    fake: Ahead, jobs: Callable[..., list[Job]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "env" / "stop").touch()
    for job in jobs(*range(1, 8)):
        fake.want([job])
        fake.finish(job.name)
    assert len(fake.made) == making.MOST_UNUSED
    fake.taken(sorted(fake.made)[0])
    monkeypatch.setattr(making, "LEAST_FREE_BYTES", 2**62)
    fake.want(jobs(9))
    fake.finish(jobs(9)[0].name)
    assert len(fake.made) == making.MOST_UNUSED - 1


def test_closing_ends_it_even_while_it_is_paused(
    fake: Ahead, jobs: Callable[..., list[Job]], tmp_path: Path
) -> None:
    fake.want(jobs(1))
    wait_for(lambda: both_beat(tmp_path))
    processes = [psutil.Process(int(pid)) for pid in (tmp_path / "env" / "pids").read_text().split()]
    fake.pause()
    fake.close()
    _, alive = psutil.wait_procs(processes, timeout=20)
    assert not [one for one in alive if one.status() != psutil.STATUS_ZOMBIE]


WORKER = """
import json, sys, time
from accel_micro.builds import ahead as making
making.LEAST_FREE_BYTES = 0
ahead = making.Ahead(command=sys.argv[2:])
ahead.want([making.Job.from_json(json.loads(sys.argv[1]))])
print("begun", flush=True)
for line in sys.stdin:
    ahead.pause()
    print("paused", flush=True)
time.sleep(60)
"""


@pytest.mark.parametrize("paused", [True, False])
def test_who_is_killed_takes_it_along(jobs: Callable[..., list[Job]], tmp_path: Path, paused: bool) -> None:
    script = tmp_path / "installer.py"
    leave = "import os, sys, threading\nfrom accel_micro.builds.ahead import _leave_with\n"
    leave += "threading.Thread(target=_leave_with, args=(os.getppid(),), daemon=True).start()\n"
    script.write_text(leave + INSTALLER)
    text = json.dumps(jobs(1)[0].to_json())
    arguments = [sys.executable, "-c", WORKER, text, sys.executable, str(script)]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    with subprocess.Popen(
        arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    ) as worker:
        assert worker.stdin is not None and worker.stdout is not None
        assert worker.stdout.readline() == "begun\n"
        wait_for(lambda: both_beat(tmp_path))
        processes = [psutil.Process(int(pid)) for pid in (tmp_path / "env" / "pids").read_text().split()]
        if paused:
            worker.stdin.write("\n")
            worker.stdin.flush()
            assert worker.stdout.readline() == "paused\n"
        worker.send_signal(signal.SIGKILL)
    _, alive = psutil.wait_procs(processes, timeout=20)
    assert not [one for one in alive if one.status() != psutil.STATUS_ZOMBIE]


def test_the_real_one_makes_environments(jobs: Callable[..., list[Job]]) -> None:
    ahead = Ahead()
    (job,) = jobs(5)
    assert Job.from_json(json.loads(json.dumps(job.to_json()))).wheel == job.wheel
    assert job.is_open
    ahead.want([job])
    ahead.finish(job.name)
    assert ahead.made == {job.name}
    made = job.store.find(job.wheel, job.interpreter)
    assert made is not None and made.facts.version == "2.15.0.dev20261105+cpu"
    assert not job.is_open
    ahead.want([job])  # there is nothing to do
    assert ahead._process is None
    ahead.close()
