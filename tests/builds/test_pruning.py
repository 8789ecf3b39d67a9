import os
from pathlib import Path

import pytest

from accel_micro.builds import disk
from accel_micro.builds.environments import Environments
from accel_micro.builds.pruning import DEFAULT_LIMIT_GB, LIMIT_VARIABLE, limit_bytes, prune
from tests.builds.fake_torch import HERE, wheel_of, write_wheel

BALLAST = 3_000_000


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Environments:
    """Three environments, used in the order 7, 5, 6, each with a file of `BALLAST` bytes that uv's cache has too."""
    monkeypatch.delenv("UV_CACHE_DIR", raising=False)
    monkeypatch.setenv("UV_NO_INDEX", "1")
    made = Environments(tmp_path / "env", beside=())
    for day in (5, 6, 7):
        path = write_wheel(
            tmp_path / "wheels", f"2.15.0.dev2026110{day}+cpu", more={"torch/big.so": os.urandom(BALLAST)}
        )
        made.acquire(wheel_of(path), HERE).release()
    for age, day in enumerate((6, 5, 7)):
        name = next(env.name for env in made if env.facts.version == f"2.15.0.dev2026110{day}+cpu")
        os.utime(made.folder / ".locks" / name, (1e9 - age, 1e9 - age))
    return made


def days(store: Environments) -> list[str]:
    return [environment.facts.version[-6:-4] for environment in store]


def on_disk(store: Environments) -> int:
    return sum({identity: size for identity, size, _ in disk.inodes(store.folder)}.values())


def test_below_the_limit_nothing_is_touched(store: Environments) -> None:
    before = on_disk(store)
    done = prune(store, 10 * BALLAST)
    assert (done.removed, done.forgotten, done.in_use) == ([], [], [])
    assert on_disk(store) == before


def test_what_was_not_used_for_longest_goes_first(store: Environments) -> None:
    planned = prune(store, 2 * BALLAST + 1_000_000, dry_run=True)
    assert days(store) == ["05", "06", "07"], "a dry run removes nothing"
    done = prune(store, 2 * BALLAST + 1_000_000)
    assert planned == done
    assert days(store) == ["05", "06"]
    assert [removed.version for removed in done.removed] == ["2.15.0.dev20261107+cpu"]
    assert BALLAST < done.removed[0].freed_bytes < 2 * BALLAST
    assert done.forgotten == ["torch"], "the cache held another link to what was removed"
    assert done.after_bytes <= done.limit_bytes < done.before_bytes
    assert on_disk(store) == pytest.approx(done.after_bytes, abs=100_000)


def test_what_is_in_use_stays(store: Environments, tmp_path: Path) -> None:
    oldest = wheel_of(tmp_path / "wheels" / write_wheel(tmp_path / "again", "2.15.0.dev20261107+cpu").name)
    with store.acquire(oldest, HERE) as used:
        assert not used.made_now
        os.utime(store.folder / ".locks" / used.name, (1, 1))
        done = prune(store, 0)
        assert done.in_use == [used.name]
        assert days(store) == ["07"]
        assert (used.folder / "bin" / "python").exists()
    assert prune(store, 0).in_use == []
    assert days(store) == []


def test_an_environment_works_after_the_cache_forgot_it(store: Environments, tmp_path: Path) -> None:
    prune(store, 2 * BALLAST + 1_000_000)
    lease = store.acquire(
        wheel_of(tmp_path / "wheels" / next((tmp_path / "wheels").glob("*05+*")).name), HERE
    )
    with lease as kept:
        assert not kept.made_now
        assert (kept.folder / "lib").exists()
    with store.acquire(wheel_of(next((tmp_path / "wheels").glob("*07+*"))), HERE) as again:
        assert again.made_now


def test_leftovers_of_killed_runs_go(store: Environments) -> None:
    name = next(iter(store)).name
    leftover = store.folder / f".partial-{name}.abc"
    (leftover / "lib").mkdir(parents=True)
    assert prune(store, 10 * BALLAST, dry_run=True).leftovers == [leftover]
    assert leftover.exists()
    with store.held_alone(name):  # somebody else is at it
        assert prune(store, 10 * BALLAST).leftovers == []
    assert prune(store, 10 * BALLAST).leftovers == [leftover]
    assert not leftover.exists()


def test_the_user_s_own_cache_is_left_alone(
    store: Environments, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UV_CACHE_DIR", str(store.folder / ".uv-cache"))
    chosen = Environments(store.folder, beside=())
    done = prune(chosen, 0)
    assert done.forgotten == []
    assert list((store.folder / ".uv-cache").glob("archive-v*/*"))


def test_nothing_there(tmp_path: Path) -> None:
    done = prune(Environments(tmp_path / "nowhere"), 0)
    assert (done.before_bytes, done.after_bytes) == (0, 0)


def test_the_limit_is_the_user_s(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(LIMIT_VARIABLE, raising=False)
    assert limit_bytes() == DEFAULT_LIMIT_GB * 1e9
    monkeypatch.setenv(LIMIT_VARIABLE, "1.5")
    assert limit_bytes() == 1_500_000_000
    for bad in ("much", "-1", "inf", "nan"):
        monkeypatch.setenv(LIMIT_VARIABLE, bad)
        with pytest.raises(ValueError, match=rf"ACCEL_MICRO_ENVIRONMENTS_GB is '{bad}'"):
            limit_bytes()


@pytest.mark.parametrize(
    ("size", "text"),
    [(0, "0 bytes"), (999, "999 bytes"), (1000, "1 kB"), (7_400_000, "7.4 MB"), (812e6, "812 MB"), (5.6e9, "5.6 GB"),
     (3e12, "3.0 TB")],
)  # fmt: skip
def test_sizes_for_people(size: float, text: str) -> None:
    assert disk.human_bytes(size) == text
