import sys
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import pytest

from accel_micro.asv_plugin import patching


class Owner:
    """Something of asv's."""

    def plain(self, x: int) -> int:
        return x

    @classmethod
    def of_class(cls, x: int) -> tuple[str, int]:
        return cls.__name__, x


def doubled(original: Callable[..., Any]) -> Callable[..., Any]:
    def replacement(*arguments: Any) -> Any:
        result = original(*arguments)
        return result * 2

    return replacement


def negated(original: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *arguments: -original(*arguments)


@pytest.fixture
def owner() -> type[Owner]:
    return type("Copy", (), dict(vars(Owner)))  # type: ignore[return-value]


def test_a_method_is_replaced_once(owner: type[Owner]) -> None:
    for _ in range(2):
        patching.replace(owner, "plain", doubled, takes=("x",))
    assert owner().plain(3) == 6


def test_two_replacements_of_one_method_stack(owner: type[Owner]) -> None:
    for _ in range(2):
        patching.replace(owner, "plain", doubled, takes=("x",))
        patching.replace(owner, "plain", negated, takes=("x",))
    assert owner().plain(3) == -6


def test_a_classmethod_stays_one(owner: type[Owner]) -> None:
    patching.replace(owner, "of_class", doubled)
    assert owner.of_class(1) == ("Copy", 1, "Copy", 1)


@pytest.fixture
def modules() -> Iterator[tuple[ModuleType, ModuleType]]:
    home, importer = ModuleType("asv.home"), ModuleType("asv.importer")
    home.f = importer.f = lambda x: x  # type: ignore[attr-defined]
    sys.modules.update({"asv.home": home, "asv.importer": importer})
    yield home, importer
    del sys.modules["asv.home"], sys.modules["asv.importer"]


def test_a_function_is_replaced_wherever_it_was_imported(modules: tuple[ModuleType, ModuleType]) -> None:
    home, importer = modules
    patching.replace(home, "f", doubled)
    assert home.f(1) == importer.f(1) == 2


def test_what_asv_lacks_is_named(owner: type[Owner]) -> None:
    with pytest.raises(
        patching.IncompatibleAsv, match=r"this asv has no Copy\.gone; accel_micro needs asv 0\.6\.6"
    ):
        patching.replace(owner, "gone", doubled)
    with pytest.raises(patching.IncompatibleAsv, match=r"Copy\.plain of this asv takes no y, z"):
        patching.replace(owner, "plain", doubled, takes=("x", "y", "z"))


def test_this_asv_has_all_that_the_plugin_builds_on() -> None:
    from accel_micro.asv_plugin import setup

    setup()
    setup()
