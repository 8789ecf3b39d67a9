"""Builds by name in `explain`: each side that names one runs with the Python of its environment, kept until the end."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from accel_micro.asv_plugin.sources import Sources
from accel_micro.builds import Ledger, Target, UnknownBuild, Wheel, environments, identify
from accel_micro.builds.installing import NotInstalled
from accel_micro.builds.variants import Variants
from accel_micro.commands import common
from accel_micro.commands.explain_builds import NoBuild, with_builds
from accel_micro.explain.setting import Setting
from tests.builds.fake_torch import HERE, platform_tag, write_wheel


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
def kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Kept:
    """A ledger: 1.0 and 2.0 have wheels for the CPU and of no variant, 3.0 has none, 4.0 one of no variant."""
    store = Kept()
    ledger = Ledger(tmp_path / "builds.jsonl")
    for version, variants in {"1.0": ("cpu", ""), "2.0": ("cpu", ""), "3.0": (), "4.0": ("",)}.items():
        ledger.remember(identify(version))
        for variant in variants:
            known(ledger, version, variant)
    room = SimpleNamespace(
        conf=SimpleNamespace(pythons=["same"], env_dir="env"),
        ledger=ledger,
        sources=lambda *_: Sources(
            (str(tmp_path / "index"),),
            Variants(("cpu",), "as asked"),
            (Target.here(("cpu",), HERE.python),),
        ),
    )
    monkeypatch.setattr(common.Room, "of", lambda *_: room)
    monkeypatch.setattr(environments.Environments, "below", lambda *_, **__: store)
    return store


def known(ledger: Ledger, version: str, variant: str) -> None:
    """Note a wheel of this version."""
    said = version + (variant and f"+{variant}")
    name = f"torch-{said}-{HERE.tag}-{HERE.tag}-{platform_tag()}.whl"
    ledger.remember_all([Wheel(identify(version).id, said, name, variant or "default")])


def test_sides_that_name_a_build_get_its_python(kept: Kept) -> None:
    settings = [Setting.parse("cpu batch=4 build=1.0"), Setting.parse("cpu batch=4 build=2.0 threads=1")]
    with with_builds(settings, lambda _: None) as found:
        assert [each.switches["python"] for each in found] == [
            "/env/1.0+cpu/bin/python",
            "/env/2.0+cpu/bin/python",
        ]
        assert [each.switches["build"] for each in found] == ["1.0", "2.0"]
        assert found[1].switches["threads"] == "1" and found[1].batch == 4
        assert kept.held == ["1.0+cpu", "2.0+cpu"]
    assert kept.held == []


def test_sides_without_a_build_stay_as_they_are_and_nothing_is_made() -> None:
    settings = [Setting.parse("cpu batch=4"), Setting.parse("cuda batch=4 python=/mine")]
    with with_builds(settings, lambda _: None) as found:
        assert found == settings


@pytest.mark.parametrize(
    ("name", "said"),
    [("3.0", "no wheel of torch 3.0 is known"), ("2.0", "torch 2.0\\+cpu could not be installed: torn")],
)
def test_a_build_that_cannot_be_had_is_said_and_others_are_let_go(kept: Kept, name: str, said: str) -> None:
    kept.failing = "2.0+cpu"
    settings = [Setting.parse("cpu build=1.0"), Setting.parse(f"cpu build={name}")]
    with pytest.raises(NoBuild, match=said), with_builds(settings, lambda _: None):
        pass
    assert kept.held == []


def test_sides_have_wheels_of_one_variant_where_one_has_all(kept: Kept) -> None:
    """Else an explanation would be of CUDA's build and the CPU's, and call that two versions."""
    said: list[str] = []
    settings = [Setting.parse("cpu build=1.0"), Setting.parse("cpu build=4.0")]
    with with_builds(settings, said.append):
        assert kept.held == ["1.0", "4.0"]
    assert said == []


def test_sides_of_two_variants_are_said(kept: Kept) -> None:
    said: list[str] = []
    ledger = common.Room.of(None, None).ledger
    ledger.remember(identify("5.0"))
    known(ledger, "5.0", "cpu")
    settings = [Setting.parse("cpu build=5.0"), Setting.parse("cpu build=4.0")]
    with with_builds(settings, said.append):
        assert kept.held == ["5.0+cpu", "4.0"]
    assert said == [
        "no variant has all of these builds, so a difference may be the variant's: "
        "torch 5.0+cpu is for cpu, torch 4.0 is for default"
    ]


def test_a_build_that_is_not_known_yet_is_looked_for(kept: Kept, tmp_path: Path) -> None:
    write_wheel(tmp_path / "index", "6.0+cpu")
    said: list[str] = []
    with with_builds([Setting.parse("cpu build=6.0")], said.append):
        assert kept.held == ["6.0+cpu"]
    assert said == ["looking for torch 6.0 in the indexes"]


def test_a_build_that_no_index_has_is_said(kept: Kept, tmp_path: Path) -> None:
    said: list[str] = []
    with (
        pytest.raises(UnknownBuild, match="no build is called '7"),
        with_builds([Setting.parse("cpu build=7.0")], said.append),
    ):
        pass
    assert said[0] == "looking for torch 7.0 in the indexes" and said[1].endswith("is no folder")
