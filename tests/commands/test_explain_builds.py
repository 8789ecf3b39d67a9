"""Builds by name in `explain`: each side that names one runs with the Python of its environment, kept until the end."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from accel_micro.builds import environments, interpreters
from accel_micro.builds.installing import NotInstalled
from accel_micro.commands import common
from accel_micro.commands.explain_builds import NoBuild, with_builds
from accel_micro.explain.setting import Setting


class Kept:
    """A store of environments on paper."""

    def __init__(self, failing: str = "") -> None:
        self.held: list[str] = []
        self.failing = failing

    def acquire(self, wheel: Any, interpreter: Any) -> Any:
        if wheel.version == self.failing:
            raise NotInstalled("torn")
        self.held.append(wheel.version)
        environment = SimpleNamespace(python=Path(f"/env/{wheel.version}/bin/python"))
        return SimpleNamespace(environment=environment, release=lambda: self.held.remove(wheel.version))


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch) -> Kept:
    store = Kept()
    builds = {name: SimpleNamespace(id=name, version=name) for name in ("1.0", "2.0", "3.0")}
    ledger = SimpleNamespace(resolve=builds.__getitem__, wheels=lambda id: [] if id == "3.0" else [id])
    room = SimpleNamespace(
        conf=SimpleNamespace(pythons=["same"], env_dir="env"),
        ledger=ledger,
        sources=lambda *_: SimpleNamespace(targets=[None]),
    )
    monkeypatch.setattr(common.Room, "of", lambda *_: room)
    monkeypatch.setattr(environments.Environments, "below", lambda *_, **__: store)
    monkeypatch.setattr(interpreters, "find_interpreter", lambda name: name)
    monkeypatch.setattr(
        "accel_micro.builds.choose_wheel",
        lambda wheels, target: SimpleNamespace(version=wheels[0]) if wheels else None,
    )
    return store


def test_sides_that_name_a_build_get_its_python(kept: Kept) -> None:
    settings = [Setting.parse("cpu batch=4 build=1.0"), Setting.parse("cpu batch=4 build=2.0 threads=1")]
    with with_builds(settings, lambda _: None) as found:
        assert [each.switches["python"] for each in found] == ["/env/1.0/bin/python", "/env/2.0/bin/python"]
        assert [each.switches["build"] for each in found] == ["1.0", "2.0"]
        assert found[1].switches["threads"] == "1" and found[1].batch == 4
        assert kept.held == ["1.0", "2.0"]
    assert kept.held == []


def test_sides_without_a_build_stay_as_they_are_and_nothing_is_made() -> None:
    settings = [Setting.parse("cpu batch=4"), Setting.parse("cuda batch=4 python=/mine")]
    with with_builds(settings, lambda _: None) as found:
        assert found == settings


@pytest.mark.parametrize(
    ("name", "said"),
    [("3.0", "no wheel of torch 3.0 is known"), ("2.0", "torch 2.0 could not be installed: torn")],
)
def test_a_build_that_cannot_be_had_is_said_and_others_are_let_go(kept: Kept, name: str, said: str) -> None:
    kept.failing = "2.0"
    settings = [Setting.parse("cpu build=1.0"), Setting.parse(f"cpu build={name}")]
    with pytest.raises(NoBuild, match=said), with_builds(settings, lambda _: None):
        pass
    assert kept.held == []
