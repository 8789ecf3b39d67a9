"""All facts together, on this machine and from fixtures."""

import json
from typing import Any

import pytest

from accel_micro import host
from accel_micro.host import gather, processor
from accel_micro.host.gather import Gathered


def test_facts_of_this_machine_are_plain_and_have_sources() -> None:
    facts = host.facts(interval_seconds=0.05)
    assert json.loads(json.dumps(facts)) == facts
    assert facts["cpu"]["allowed_cores"] == host.allowed_cores()
    assert facts["memory"]["total_bytes"] > 1 << 20
    assert facts["unread"] == {}
    names = {
        f"{group}.{name}"
        for group, content in facts.items()
        if group not in ("sources", "unread", "environment")
        for name in content
    }
    assert names | {"environment"} == facts["sources"].keys() | {"environment"}
    assert all(facts["sources"].values())


def test_a_group_that_fails_costs_itself_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> None:
        raise PermissionError("not for you")

    monkeypatch.setattr(processor, "gather", fail)
    facts = host.facts(interval_seconds=0.01)
    assert facts["unread"] == {"cpu": "PermissionError: not for you"}
    assert "cpu" not in facts
    assert facts["system"]
    assert "cpu" not in host.machine_facts()


def test_what_could_not_be_read_is_absent() -> None:
    gathered = Gathered()
    gathered.put("cpu.governor", None, "somewhere")
    gathered.put("cpu.boost", False, "elsewhere")
    assert gathered.grouped() == {
        "cpu": {"boost": False},
        "sources": {"cpu.boost": "elsewhere"},
        "unread": {},
    }


def test_machine_facts_are_short_texts_that_stay_the_same() -> None:
    first, second = host.machine_facts(), host.machine_facts()
    assert first == second
    assert {"cpu", "cpu_cores_allowed", "ram", "arch", "os"} <= first.keys()
    assert all(isinstance(value, str) and value for value in first.values())


def test_machine_facts_hold_nothing_volatile() -> None:
    gpu = {
        "name": "NVIDIA H100 80GB HBM3",
        "memory_bytes": 81559 << 20,
        "driver": "550.54.15",
        "temperature_celsius": 60,
        "clock_hertz": 5,
    }
    values = {
        "cpu.model": "AMD EPYC 7763 64-Core Processor",
        "cpu.allowed_cores": 16,
        "cpu.frequency_now_hertz": 2_400_000_000,
        "memory.total_bytes": 1081_000_000_000,
        "memory.limit_bytes": 137438953472,
        "memory.available_bytes": 5,
        "system.architecture": "x86_64",
        "system.os": "Linux 6.8",
        "system.kernel": "6.8.0-49-generic",
        "system.container": "docker",
        "load.average": 3.0,
        "gpu.devices": [gpu, gpu],
    }
    assert gather.stable(values) == {
        "cpu": "AMD EPYC 7763 64-Core Processor",
        "cpu_cores_allowed": "16",
        "ram": "128 GiB",
        "arch": "x86_64",
        "os": "Linux 6.8",
        "container": "docker",
        "gpu": "NVIDIA H100 80GB HBM3",
        "gpu_count": "2",
        "gpu_memory": "80 GiB",
        "gpu_driver": "550.54.15",
    }


def test_unknown_names_raise() -> None:
    with pytest.raises(AttributeError, match="no attribute 'weather'"):
        _ = host.weather  # type: ignore[attr-defined]
