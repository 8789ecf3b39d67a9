"""What people and programs read."""

import io
import json

import pytest
from rich.console import Console
from syrupy.assertion import SnapshotAssertion

from accel_micro import doctor
from accel_micro.doctor.rendering import summary
from tests.doctor.machines import CLEAN, TORCH, changed

TROUBLED = changed(
    CLEAN,
    {
        "cpu.governor": "powersave",
        "cpu.frequency_now_hertz": 1_203_000_000,
        "cpu.quota_cores": 2.5,
        "load.busy_elsewhere": 0.31,
        "load.processes": [{"name": "[bold]ffmpeg", "pid": 4711, "cores": 2.48}],
        "system.virtual_machine": "KVM",
        "system.container": "docker",
        "memory.limit_bytes": 32 << 30,
        "power.on_battery": False,
        "power.battery_percent": 88,
        "environment.CUDA_LAUNCH_BLOCKING": "1",
        "environment.PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True," * 6,
        "gpu.devices.0.throttle_reasons": ["power cap", "hardware thermal slowdown"],
        "gpu.devices.0.processes": [{"pid": 99, "name": "python3", "memory_bytes": 17 << 30}],
    },
)
SPEED = {"host_spins_per_second": 1034.2, "product_flops_per_second": 92.1e9, "copy_bytes_per_second": 11.3e9}


def printed(facts: dict, torch: dict | None, width: int, speed: dict | None = None) -> str:
    console = Console(file=io.StringIO(), width=width, color_system=None, legacy_windows=False)
    doctor.render(facts, torch, doctor.diagnose(facts, torch), console, speed=speed)
    return console.file.getvalue()


@pytest.mark.parametrize("width", [80, 120])
def test_a_troubled_machine(width: int, snapshot: SnapshotAssertion) -> None:
    text = printed(TROUBLED, TORCH, width, SPEED)
    assert max(map(len, text.splitlines())) <= width
    assert all(line == line.rstrip() for line in text.splitlines())
    assert text == snapshot


def test_a_clean_machine(snapshot: SnapshotAssertion) -> None:
    assert printed(CLEAN, TORCH, 80) == snapshot


def test_a_lowered_power_limit_is_shown_against_the_default() -> None:
    assert "power               71.2 W, 700 W allowed\n" in printed(CLEAN, TORCH, 80)
    lowered = changed(CLEAN, {"gpu.devices.0.power_limit_watts": 500})
    assert "power               71.2 W, 500 W allowed of 700 W by default\n" in printed(lowered, TORCH, 80)


def test_no_facts_print_the_summary_alone() -> None:
    assert printed({}, None, 80) == "Nothing found. This machine is fit for timing.\n"


def test_markup_in_names_is_printed_as_it_is() -> None:
    assert "[bold]ffmpeg" in printed(TROUBLED, TORCH, 120)


def test_for_programs() -> None:
    data = doctor.to_json(TROUBLED, TORCH, doctor.diagnose(TROUBLED, TORCH), SPEED)
    assert json.loads(json.dumps(data)) == data
    assert data["host"] == TROUBLED
    assert data["torch"] == TORCH
    assert data["speed"] == SPEED
    assert data["findings"][0].keys() == {"name", "severity", "what", "remedy"}
    assert data["findings"][0]["severity"] == "problem"


@pytest.mark.parametrize(
    ("severities", "expected"),
    [
        ([], "Nothing found. This machine is fit for timing."),
        (["note", "note"], "2 notes. This machine is fit for timing."),
        (["warning", "note"], "1 warning, 1 note. Timings can be taken; small differences may be noise."),
        (["problem"], "1 problem. Timings taken now mean nothing: solve the problems first."),
    ],
)
def test_the_summary_counts(severities: list[str], expected: str) -> None:
    assert (
        summary([doctor.Finding("name", severity, "what", "remedy") for severity in severities]) == expected
    )


def test_this_machine_can_be_examined() -> None:
    facts, torch_facts = doctor.examine(interval_seconds=0.05)
    assert facts["cpu"]["allowed_cores"] >= 1
    assert torch_facts["build"]["version"]
    assert "Processor" in printed(facts, torch_facts, 80)
