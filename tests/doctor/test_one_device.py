"""The doctor about one device: the others' troubles are left out, the host's are not."""

import json
from typing import Any

import pytest
from typer.testing import CliRunner

from accel_micro import doctor
from accel_micro.cli import app
from accel_micro.devices import DeviceUnavailable, UnknownDevice
from accel_micro.doctor.one_device import only
from accel_micro.host import cards
from tests.doctor.machines import CLEAN, TORCH, changed
from tests.host.machines import TWO_CARDS

SECOND = {**CLEAN["gpu"]["devices"][0], "index": 1, "throttle_reasons": ["power cap"]}
TWO = changed(CLEAN, {"gpu.devices": [*CLEAN["gpu"]["devices"], SECOND], "load.busy_elsewhere": 0.25})


@pytest.fixture(autouse=True)
def two_cards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cards, "listing", lambda kind: TWO_CARDS if kind == "cuda" else [])
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setattr(doctor, "examine", lambda interval: (TWO, TORCH))


def names(facts: dict[str, Any]) -> list[str]:
    return [finding.name for finding in doctor.diagnose(facts, TORCH)]


@pytest.mark.parametrize(
    ("device", "indices", "findings"),
    [
        ("cuda:1", [1], ["busy machine", "GPU is throttled"]),
        ("cuda", [0], ["busy machine"]),
        ("cpu", [], ["busy machine"]),
    ],
)
def test_only_the_card_that_is_meant_counts(device: str, indices: list[int], findings: list[str]) -> None:
    facts = only(TWO, device)
    assert [each["index"] for each in facts["gpu"]["devices"]] == indices
    assert names(facts) == findings
    assert len(TWO["gpu"]["devices"]) == 2


def test_a_card_is_the_visible_one_of_that_index(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    assert [each["index"] for each in only(TWO, "cuda")["gpu"]["devices"]] == [1]
    with pytest.raises(DeviceUnavailable, match="this machine shows no cuda:1"):
        only(TWO, "cuda:1")


def test_a_machine_without_gpus_is_not_called_fit_for_one() -> None:
    bare = changed(CLEAN, {"gpu.devices": [], "gpu.pci": []})
    with pytest.raises(DeviceUnavailable, match="this machine shows no cuda"):
        only(bare, "cuda")
    assert only(bare, "xpu:1")["gpu"]["devices"] == [], "Intel's are listed by no tool that is asked"


@pytest.mark.parametrize("device", ["gpu", "cuda:x", ""])
def test_an_unknown_device_is_refused(device: str) -> None:
    with pytest.raises(UnknownDevice, match="known: cpu, cuda"):
        only(TWO, device)


def test_the_command_takes_a_device() -> None:
    run = CliRunner().invoke
    done = run(app, ["doctor", "--device", "cuda:1", "--format", "json"])
    assert [each["index"] for each in json.loads(done.stdout)["host"]["gpu"]["devices"]] == [1]
    assert run(app, ["doctor", "--device", "gpu"]).exit_code == 2
    absent = run(app, ["doctor", "--device", "cuda:5"])
    assert absent.exit_code == 3
    assert "this machine shows no cuda:5" in absent.stderr
