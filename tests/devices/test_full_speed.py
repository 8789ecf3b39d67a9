"""The full speed of a machine is remembered, robust, and does not decay."""

import json
from pathlib import Path

import pytest

from accel_micro.devices import full_speed, store


def test_nothing_is_known_at_first() -> None:
    assert full_speed.known("host") is None


def test_a_few_slow_processes_do_not_lower_it() -> None:
    for _ in range(8):
        full_speed.contribute("host", [100.0] * 20)
    for _ in range(30):
        full_speed.contribute("host", [55.0] * 20)
    assert full_speed.known("host") == 100.0


def test_a_freak_does_not_raise_it() -> None:
    for _ in range(8):
        full_speed.contribute("host", [100.0] * 20)
    full_speed.contribute("host", [180.0] * 20)
    full_speed.contribute("host", [100.0] * 19 + [500.0])
    assert full_speed.known("host") == 100.0


def test_the_slow_mode_alone_is_taken_for_full_speed_until_a_fast_one_is_seen() -> None:
    full_speed.contribute("host", [55.0] * 20)
    assert full_speed.known("host") == 55.0
    for _ in range(8):
        full_speed.contribute("host", [100.0] * 20)
    assert full_speed.known("host") == 100.0


def test_too_few_probes_are_ignored() -> None:
    full_speed.contribute("host", [100.0] * 9)
    assert full_speed.known("host") is None


def test_establish_probes_once_and_remembers() -> None:
    time = [0.0]

    def now() -> float:
        return time[0]

    def probe() -> float:
        time[0] += 1e-3
        return 55.0 if time[0] < 1.6 else 100.0  # four fifths of the time in the slow mode

    speed = full_speed.establish("host", probe, now)
    assert speed == full_speed.known("host")
    assert time[0] == pytest.approx(2.0, abs=0.01)
    assert full_speed.establish("host", probe, now) == speed
    assert time[0] == pytest.approx(2.0, abs=0.01)


def test_a_damaged_memory_is_forgotten_not_fatal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(store.ENVIRONMENT_VARIABLE, str(tmp_path))
    (tmp_path / "speeds.json").write_text("{torn")
    assert full_speed.known("host") is None
    full_speed.contribute("host", [100.0] * 20)
    assert json.loads((tmp_path / "speeds.json").read_text()) == {"host": [100.0]}


def test_a_folder_that_cannot_be_written_costs_the_memory_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv(store.ENVIRONMENT_VARIABLE, str(tmp_path / "file" / "below"))
    full_speed.contribute("host", [100.0] * 20)
    assert full_speed.known("host") is None
    assert full_speed.establish("host", lambda: 7.0, iter(range(10**6)).__next__) == 7.0  # type: ignore[arg-type]
