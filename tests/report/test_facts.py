"""Facts of any shape become labels and texts; none can break the page."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accel_micro.report import facts
from tests.report.fixtures import FACTS


def test_groups_keep_order_units_and_sources() -> None:
    groups = {group.name: group.facts for group in facts.groups(FACTS)}
    assert list(groups) == [
        "cpu", "system", "memory", "python", "load", "gpu devices", "torch build", "torch threads"
    ]  # fmt: skip
    cpu = {fact.label: fact for fact in groups["cpu"]}
    assert cpu["model"].source == "py-cpuinfo"
    assert cpu["base frequency"].text == "2.40 GHz"
    assert cpu["last level cache"].text == "403 MB"
    assert cpu["instruction sets"].text == "avx2, avx512f, avx512_bf16"
    assert cpu["smt"].text == "yes"
    assert {fact.label: fact.text for fact in groups["gpu devices"]}["power limit"] == "700 W"
    assert groups["torch build"][0].source == "torch.__version__", "a group may bring sources of its own"


MORE = {"driver": "580", "memory_bytes": 1, "persistence": True}


def test_several_devices_are_numbered_and_loose_facts_come_first() -> None:
    found = facts.groups(
        {"gpu": {"devices": [{"name": "a", **MORE}, {"name": "b", **MORE}]}, "threads": 4, "none": None}
    )
    assert [(group.name, group.facts[0].text) for group in found] == [
        ("", "4"), ("gpu devices 0", "a"), ("gpu devices 1", "b")
    ]  # fmt: skip


def test_short_items_of_a_list_share_a_line() -> None:
    processes = [{"name": "python", "pid": 12, "cores": 0.72}, {"name": "make", "pid": 7, "cores": 0.5}]
    (group,) = facts.groups({"load": {"processes": processes}})
    assert group.facts[0].text == "name python, pid 12, cores 0.72; name make, pid 7, cores 0.5"


def test_summary_names_processor_accelerators_and_system() -> None:
    assert facts.summary(FACTS) == ("AMD EPYC 9654 96-Core Processor", "NVIDIA H100 80GB HBM3", "Linux 6.8")
    assert facts.summary({}) == ()
    assert facts.summary({"cpu": "x", "gpu": {"devices": "no list"}}) == ()


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -5.0, -1, 0, 10**30])
def test_odd_numbers_are_shown_as_they_are(value: float) -> None:
    assert facts.text("size_bytes", value)


scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
names = st.text(max_size=8) | st.sampled_from(["sources", "unread", "a_bytes", "b_seconds", "c_hertz"])
trees = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3)
)


@given(st.dictionaries(names, trees, max_size=4))
def test_facts_of_any_shape_are_shown(tree: dict[str, Any]) -> None:
    for group in facts.groups(tree):
        assert group.facts
        assert all(isinstance(fact.text, str) for fact in group.facts)
