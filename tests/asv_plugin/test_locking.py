"""Who may measure beside whom: one run a card, runs on two cards together, and a run on the CPU alone."""

from pathlib import Path

import pytest

from accel_micro.asv_plugin import locking
from accel_micro.asv_plugin.errors import DeviceBusy, EnvironmentLacks
from accel_micro.devices import chosen
from accel_micro.host import cards
from accel_micro.host.cards import Listed
from tests.host.machines import TWO_CARDS


@pytest.fixture(autouse=True)
def two_cards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cards, "listing", lambda kind: TWO_CARDS if kind == "cuda" else [])
    for name in ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", chosen.VARIABLE):
        monkeypatch.delenv(name, raising=False)


def test_two_cards_are_measured_at_once_and_each_by_one_run(tmp_path: Path) -> None:
    first, second, third = (locking.DeviceLocks(tmp_path) for _ in range(3))
    first.acquire(["cuda:0"])
    second.acquire(["cuda:1"])
    with pytest.raises(DeviceBusy, match=r"^cuda:1 is being measured by process \d+ \("):
        third.acquire(["cuda:1"])
    second.release()
    third.acquire(["cuda:1"])


def test_a_card_is_the_same_by_whatever_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    by_index, by_variable, by_uuid = (locking.DeviceLocks(tmp_path) for _ in range(3))
    by_index.acquire(["cuda:1"])
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    with pytest.raises(DeviceBusy, match=r"^cuda is being measured"):
        by_variable.acquire(["cuda"])
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", str(TWO_CARDS[1].uuid)[:12])
    with pytest.raises(DeviceBusy, match=r"^cuda is being measured"):
        by_uuid.acquire(["cuda"])


def test_the_variable_says_which_card_a_kind_means(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = locking.DeviceLocks(tmp_path), locking.DeviceLocks(tmp_path)
    monkeypatch.setenv(chosen.VARIABLE, "cuda:1")
    first.acquire(["cuda"])
    monkeypatch.setenv(chosen.VARIABLE, "cuda:0")
    second.acquire(["cuda"])


def test_the_cpu_is_measured_alone(tmp_path: Path) -> None:
    gpu, cpu, other = (locking.DeviceLocks(tmp_path) for _ in range(3))
    gpu.acquire(["cuda"])
    with pytest.raises(DeviceBusy, match=r"^cpu is in use by process \d+ \(.*\), which measures cuda; wait"):
        cpu.acquire(["cpu"])
    gpu.release()
    cpu.acquire(["cpu"])
    with pytest.raises(
        DeviceBusy, match=r"^cpu is being measured by .*, and a run on cuda:1 needs the host too"
    ):
        other.acquire(["cuda:1"])
    cpu.acquire(["cuda"])  # its own
    cpu.release()
    other.acquire(["cuda:1"])


def test_a_run_that_comes_to_need_the_cpu_gets_it_when_no_other_runs(tmp_path: Path) -> None:
    mine, other = locking.DeviceLocks(tmp_path), locking.DeviceLocks(tmp_path)
    mine.acquire(["cuda:0"])
    other.acquire(["cuda:1"])
    with pytest.raises(DeviceBusy, match="which measures cuda:1"):
        mine.acquire(["cpu"])
    other.release()
    with pytest.raises(DeviceBusy, match="which measures cuda:0"):  # mine still shares the host
        locking.DeviceLocks(tmp_path).acquire(["cpu"])
    mine.acquire(["cpu"])
    with pytest.raises(DeviceBusy, match=r"^cpu is being measured"):
        other.acquire(["cuda:1"])


def test_an_order_that_cannot_be_told_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mixed = [Listed(0, "GPU-a", "small"), Listed(1, "GPU-b", "large")]
    monkeypatch.setattr(cards, "listing", lambda kind: mixed)
    monkeypatch.setenv(cards.ORDER_VARIABLE, "FASTEST_FIRST")
    with pytest.raises(EnvironmentLacks, match="unset it, or set PCI_BUS_ID"):
        locking.DeviceLocks(tmp_path).acquire(["cuda"])
