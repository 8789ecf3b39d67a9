"""Facts of the processor on several machines."""

import json
from pathlib import Path
from typing import Any

import cpuinfo
import pytest
from hypothesis import given
from hypothesis import strategies as st

from accel_micro.host import cores, processor, read
from tests.host.machines import ALDER_LAKE, BIG_LITTLE, EPYC, plant


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ACCEL_MICRO_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def gathered(root: Path) -> dict[str, Any]:
    facts: dict[str, Any] = {}

    def put(name: str, value: Any, source: str) -> None:
        assert source or value is None
        if value is not None:
            facts[name] = value

    processor.gather(put, root)
    return facts


def test_a_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cores, "affinity", lambda: {0, 1, 128})
    monkeypatch.setattr(
        cpuinfo, "get_cpu_info", lambda: {"brand_raw": "AMD EPYC 7763", "vendor_id_raw": "AuthenticAMD"}
    )
    facts = gathered(plant(tmp_path / "root", EPYC))
    assert facts["cpu.vendor"] == "AMD"
    assert facts["cpu.logical_cores"] == 256
    assert facts["cpu.physical_cores"] == 128
    assert facts["cpu.affinity"] == "0-1,128"
    assert facts["cpu.affinity_cores"] == 2
    assert facts["cpu.smt"] is True
    assert facts["cpu.boost"] is True
    assert facts["cpu.numa_nodes"] == 2
    assert facts["cpu.governor"] == "performance"
    assert facts["cpu.frequency_maximum_hertz"] == 2_450_000_000
    assert facts["cpu.frequency_now_hertz"] == 2_444_123_000
    assert facts["cpu.last_level_cache_bytes"] == 32 << 20
    assert "cpu.performance_cores" not in facts


@pytest.mark.parametrize(
    ("machine", "expected"), [(ALDER_LAKE, (8, 4)), (BIG_LITTLE, (4, 4)), (EPYC, (None, None))]
)
def test_cores_of_two_kinds(
    tmp_path: Path, machine: dict[str, str], expected: tuple[int | None, int | None]
) -> None:
    root = plant(tmp_path, machine)
    online = cores.parse_cpu_list(read.text(f"{processor._CPUS}/online", root) or "")
    assert processor.hybrid_cores(online, root)[:2] == expected


def test_apple_silicon(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    variables = {"hw.physicalcpu": 10, "hw.perflevel0.physicalcpu": 8, "hw.perflevel1.physicalcpu": 2}
    monkeypatch.setattr(read, "sysctl_integer", variables.get)
    monkeypatch.setattr(cores, "affinity", lambda: None)
    monkeypatch.setattr(cpuinfo, "get_cpu_info", lambda: {"brand_raw": "Apple M1 Pro", "arch": "ARM_8"})
    cores.allowed_cores.cache_clear()
    try:
        facts = gathered(tmp_path)
    finally:
        cores.allowed_cores.cache_clear()
    assert facts["cpu.vendor"] == "Apple"
    assert facts["cpu.physical_cores"] == 10
    assert (facts["cpu.performance_cores"], facts["cpu.efficiency_cores"]) == (8, 2)
    assert facts["cpu.allowed_cores"] == 8
    assert "cpu.affinity" not in facts


def test_turbo_reads_either_file(tmp_path: Path) -> None:
    assert processor.boost(plant(tmp_path / "a", ALDER_LAKE)) is True
    off = {f"{processor._CPUS}/intel_pstate/no_turbo": "1"}
    assert processor.boost(plant(tmp_path / "b", off)) is False
    assert processor.boost(tmp_path / "c") is None


def test_py_cpuinfo_is_asked_once(tmp_path: Path, own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def get_cpu_info() -> dict[str, Any]:
        asked.append(1)
        return {"brand_raw": "A processor", "flags": ["avx2", "avx512vnni"]}

    monkeypatch.setattr(cpuinfo, "get_cpu_info", get_cpu_info)
    root = plant(tmp_path / "root", EPYC)
    assert processor.cpu_info(root) == processor.cpu_info(root)
    assert len(asked) == 1
    other = plant(tmp_path / "other", {"proc/cpuinfo": "model name : Another\n"})
    processor.cpu_info(other)
    assert len(asked) == 2
    assert len(list(own_cache.glob("cpuinfo-*.json"))) == 2


def test_a_torn_cache_is_read_anew(tmp_path: Path, own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpuinfo, "get_cpu_info", lambda: {"brand_raw": "A processor"})
    processor.cpu_info(tmp_path)
    (remembered,) = own_cache.glob("cpuinfo-*.json")
    remembered.write_text('{"brand_raw": "A pro')
    assert processor.cpu_info(tmp_path)["brand_raw"] == "A processor"
    assert json.loads(remembered.read_text()) == {"brand_raw": "A processor"}


def test_without_py_cpuinfo_the_kernels_name_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> dict[str, Any]:
        raise OSError("no such program")

    monkeypatch.setattr(cpuinfo, "get_cpu_info", fail)
    root = plant(tmp_path / "root", EPYC)
    assert processor.cpu_info(root) == {"brand_raw": "AMD EPYC 7763 64-Core Processor"}


@pytest.mark.parametrize(
    ("info", "expected"),
    [
        ({"vendor_id_raw": "GenuineIntel"}, "Intel"),
        ({"vendor_id_raw": "AuthenticAMD"}, "AMD"),
        ({"brand_raw": "Apple M2 Ultra"}, "Apple"),
        ({"brand_raw": "Neoverse-N1"}, "Arm"),
        ({"vendor_id_raw": "HygonGenuine"}, "HygonGenuine"),
        ({}, None),
    ],
)
def test_vendor(info: dict[str, str], expected: str | None) -> None:
    assert processor.vendor(info) == expected


def test_instruction_sets_ignore_how_their_names_are_written() -> None:
    assert processor.instruction_sets({"flags": ["avx512vnni", "avx512_bf16", "mmx"]}) == [
        "avx512_bf16",
        "avx512_vnni",
    ]
    assert processor.instruction_sets({"flags": None}) == []


@pytest.mark.parametrize(
    ("text", "size"), [("32K", 32 << 10), ("32768K\n", 32 << 20), ("1M", 1 << 20), ("x", None)]
)
def test_sizes(text: str, size: int | None) -> None:
    assert processor.parse_size(text) == size


@given(st.text())
def test_garbage_never_raises(text: str) -> None:
    processor.parse_size(text)
    processor.parse_cpu_model(text)
