"""What nvidia-smi and NVML say, and that both ways say it under the same names."""

import os
import sys
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accel_micro.host import nvidia, read

FIELDS = tuple({**nvidia._QUERY, **nvidia._NEWER_QUERY}.values())
H100 = (
    "0, 00000000:19:00.0, NVIDIA H100 80GB HBM3, 550.54.15, 81559, 4521, 37, 62, 698.41, 700.00, 700.00,"
    " 1410, 1980, 0x0000000000000024, Enabled, Enabled, Disabled, 9.0"
)
LAPTOP = (
    "0, 00000000:01:00.0, NVIDIA GeForce RTX 3060 Laptop GPU, 535.183.01, 6144, 12, 0, 45, 11.20,"
    " [N/A], [N/A], 210, 2100, 0x0000000000000001, [N/A], Disabled, [N/A], 8.6"
)


def test_a_server_card() -> None:
    assert nvidia.parse_gpus(H100, FIELDS) == [
        {
            "vendor": "NVIDIA",
            "index": 0,
            "bus": "00000000:19:00.0",
            "name": "NVIDIA H100 80GB HBM3",
            "driver": "550.54.15",
            "memory_bytes": 81559 << 20,
            "memory_used_bytes": 4521 << 20,
            "utilization": 0.37,
            "temperature_celsius": 62,
            "power_watts": 698.41,
            "power_limit_watts": 700,
            "power_default_limit_watts": 700,
            "clock_hertz": 1_410_000_000,
            "clock_maximum_hertz": 1_980_000_000,
            "throttle_reasons": ["power cap", "software thermal slowdown"],
            "ecc": True,
            "persistence": True,
            "mig": False,
            "compute_capability": "9.0",
        }
    ]


def test_what_a_laptop_card_does_not_know_is_absent() -> None:
    (gpu,) = nvidia.parse_gpus(LAPTOP, FIELDS)
    assert not {"power_limit_watts", "ecc", "mig"} & gpu.keys()
    assert gpu["throttle_reasons"] == ["idle"]


def test_several_cards_and_a_torn_line() -> None:
    assert [
        gpu["index"] for gpu in nvidia.parse_gpus(f"{H100}\n{H100.replace('0,', '1,', 1)}\n2, 0000", FIELDS)
    ] == [0, 1]


@pytest.mark.parametrize("word", ["", "UMD ", "KMD "])
def test_the_cuda_version_stands_in_the_banner(word: str) -> None:
    banner = f"| NVIDIA-SMI 550.54.15   Driver Version: 550.54.15   CUDA {word}Version: 12.4     |"
    assert nvidia.parse_cuda_version(banner) == "12.4"
    assert nvidia.parse_cuda_version("NVIDIA-SMI has failed") is None


def test_processes_by_card() -> None:
    text = (
        "00000000:19:00.0, 4121, /usr/bin/python3, 4096\n"
        "00000000:19:00.0, 4122, [Not Found], [N/A]\n"
        "00000000:3B:00.0, 9, C:\\train\\python.exe, 10\n"
    )
    assert nvidia.parse_processes(text) == {
        "00000000:19:00.0": [
            {"pid": 4121, "name": "python3", "memory_bytes": 4096 << 20},
            {"pid": 4122, "name": "[Not Found]"},
        ],
        "00000000:3B:00.0": [{"pid": 9, "name": "python.exe", "memory_bytes": 10 << 20}],
    }


def without_nvml(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)


def test_through_the_program(monkeypatch: pytest.MonkeyPatch) -> None:
    def output(command: list[str], timeout_seconds: float = 10.0) -> str | None:
        arguments = " ".join(command)
        if "--query-gpu" in arguments:
            # An old program refuses a query with a field that it does not know.
            return None if "compute_cap" in arguments else H100.rsplit(",", 2)[0]
        if "--query-compute-apps" in arguments:
            return f"00000000:19:00.0, 4121, python3, 4096\n00000000:19:00.0, {os.getpid()}, python3, 400"
        return "CUDA Version: 12.4"

    without_nvml(monkeypatch)
    monkeypatch.setattr(read, "output", output)
    (gpu,), source = nvidia.gpus()
    assert source == "nvidia-smi"
    assert gpu["cuda_driver"] == "12.4"
    assert gpu["processes"] == [{"pid": 4121, "name": "python3", "memory_bytes": 4096 << 20}]
    assert "bus" not in gpu


def test_without_a_driver_there_is_no_card(monkeypatch: pytest.MonkeyPatch) -> None:
    without_nvml(monkeypatch)
    monkeypatch.setattr(read, "output", lambda *_: None)
    assert nvidia.gpus() == ([], "nvidia-smi")


class FakeNvml(SimpleNamespace):
    """As much of pynvml as is asked; the card knows no ECC and no MIG, as a desktop card."""

    def __getattr__(self, name: str) -> Any:
        if name in ("nvmlDeviceGetEccMode", "nvmlDeviceGetMigMode", "nvmlSystemGetProcessName"):

            def fail(*_: Any) -> None:
                raise RuntimeError("Not Supported")

            return fail
        answers = {
            "nvmlSystemGetCudaDriverVersion_v2": 12040,
            "nvmlSystemGetDriverVersion": b"550.54.15",
            "nvmlDeviceGetCount": 1,
            "nvmlDeviceGetHandleByIndex": "handle",
            "nvmlDeviceGetName": "NVIDIA GeForce RTX 4090",
            "nvmlDeviceGetMemoryInfo": SimpleNamespace(total=24 << 30, used=1 << 30),
            "nvmlDeviceGetUtilizationRates": SimpleNamespace(gpu=50),
            "nvmlDeviceGetCurrentClocksThrottleReasons": 0x4,
            "nvmlDeviceGetPersistenceMode": 1,
            "nvmlDeviceGetCudaComputeCapability": (8, 9),
            "nvmlDeviceGetComputeRunningProcesses": [SimpleNamespace(pid=5, usedGpuMemory=None)],
        }
        return lambda *_: answers.get(name, 1000)


def test_through_nvml(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", FakeNvml())
    (gpu,), source = nvidia.gpus()
    assert source == "NVML"
    assert gpu["driver"] == "550.54.15"
    assert gpu["cuda_driver"] == "12.4"
    assert gpu["compute_capability"] == "8.9"
    assert gpu["throttle_reasons"] == ["power cap"]
    assert gpu["utilization"] == 0.5
    assert gpu["power_watts"] == 1.0
    assert gpu["clock_hertz"] == 10**9
    assert gpu["processes"] == [{"pid": 5}]
    assert not {"ecc", "mig"} & gpu.keys()


def test_both_ways_use_the_same_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", FakeNvml())
    by_nvml = {*nvidia.gpus()[0][0], "ecc", "mig"}
    (by_program,) = nvidia.parse_gpus(H100, FIELDS)
    assert by_nvml == by_program.keys() - {"bus"} | {"processes", "cuda_driver"}


@given(st.text())
def test_garbage_never_raises(text: str) -> None:
    nvidia.parse_gpus(text, FIELDS)
    nvidia.parse_processes(text)
    nvidia.parse_cuda_version(text)


@given(st.lists(st.text(alphabet="0123456789xeE.-[]N/A ", max_size=400), min_size=18, max_size=18))
def test_odd_numbers_never_raise(cells: list[str]) -> None:
    nvidia.parse_gpus(",".join(cells), FIELDS)
