"""Names to devices, and sentences for names that are none."""

import pytest
import torch

from accel_micro import devices
from accel_micro.devices.registry import DEVICE_KINDS, NOT_TIMED


def test_known_names() -> None:
    assert devices.get("cpu").unavailable() is None
    assert devices.get("cuda:1").name == "cuda:1"


@pytest.mark.parametrize("name", ["tpu", "", "cuda:", "cuda:x", "cuda:-1", "CPU"])
def test_an_unknown_name_lists_those_known(name: str) -> None:
    with pytest.raises(devices.UnknownDevice, match="known: cpu, cuda, mps, xla, xpu"):
        devices.get(name)


def test_every_device_type_of_torch_is_timed_or_has_a_reason() -> None:
    message = ""
    try:
        torch.device("nosuch")
    except RuntimeError as error:
        message = str(error)
    types = message.partition("Expected one of ")[2].partition(" device type")[0].split(", ")
    assert len(types) > 10
    for kind in types:
        assert kind in DEVICE_KINDS or kind in NOT_TIMED, kind


@pytest.mark.parametrize("name", sorted(NOT_TIMED))
def test_types_that_are_not_timed_say_why(name: str) -> None:
    with pytest.raises(devices.UnknownDevice, match=f"device '{name}' is not timed: "):
        devices.get(name)


def test_available_gives_a_reason_or_none_and_the_clocks_of_every_kind() -> None:
    found = devices.available()
    assert tuple(found) == DEVICE_KINDS
    assert found["cpu"] == {"unavailable": None, "clocks": ["throughput", "latency"]}
    for facts in found.values():
        assert facts["unavailable"] is None or len(facts["unavailable"]) > 10


def test_an_index_that_does_not_exist_is_said() -> None:
    assert "write cpu without an index" in str(devices.get("cpu:0").unavailable())
