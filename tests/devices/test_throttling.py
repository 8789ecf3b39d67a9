"""A GPU whose clock falls, from NVML to the flag of a process, on cards of paper."""

import sys
from collections.abc import Iterator

import pytest

from accel_micro.devices.base import Unwatched
from accel_micro.devices.nvml import NOT_INSTALLED, NvmlWatch
from accel_micro.measure.process import Process
from accel_micro.measure.sampling import Sampler
from tests.devices.gpus import HERTZ, UUIDS, CudaOnPaper, Gpus, PaperNvml
from tests.fake import Clock

HOST, DEVICE = 10e-6, 40e-6
POWER_CAP, THERMAL, IDLE, SET = 0x4, 0x20, 0x1, 0x2


@pytest.fixture
def gpus(monkeypatch: pytest.MonkeyPatch) -> Gpus:
    gpus = Gpus(Clock())
    gpus.install(monkeypatch)
    return gpus


@pytest.fixture
def nvml(gpus: Gpus, monkeypatch: pytest.MonkeyPatch) -> Iterator[PaperNvml]:
    nvml = PaperNvml(gpus)
    monkeypatch.setitem(sys.modules, "pynvml", nvml)
    yield nvml
    assert nvml.open == 0, "NVML was opened and not closed"


def read(gpus: Gpus, samples: int = 8, budget: float = 0.5) -> tuple[dict[str, Process], dict[str, object]]:
    device = CudaOnPaper("cuda:1", gpus.clock)
    with device.session():
        sampler = Sampler(device, gpus.call(HOST, DEVICE), budget)
        processes, unreadable = sampler.read_together(("throughput", "dispatch", "device"), samples)
        hardware = sampler.hardware
    assert not unreadable
    return processes, hardware


def throttled(process: Process) -> str | None:
    return next((flag.detail for flag in process.flags if flag.name == "throttled"), None)


def test_a_card_at_its_full_clock_is_not_flagged(gpus: Gpus, nvml: PaperNvml) -> None:
    nvml.held = lambda card, seconds: IDLE | SET
    processes, hardware = read(gpus)
    for process in processes.values():
        assert throttled(process) is None
        assert process.throttled == {}
    assert hardware["throttled_blocks"] == {}
    assert (hardware["lowest_celsius"], hardware["highest_celsius"]) == (61, 61)
    assert (hardware["lowest_hertz"], hardware["highest_hertz"]) == (HERTZ, HERTZ)
    assert (hardware["power_limit_watts"], hardware["power_default_limit_watts"]) == (500, 700)
    assert hardware["device"] == "cuda:1"


def test_blocks_that_the_driver_held_down_are_read_again(gpus: Gpus, nvml: PaperNvml) -> None:
    # The probe does not see it: its spin draws no power. The op does: every other 100 ms it takes half as long again.
    nvml.held = lambda card, seconds: POWER_CAP if int(seconds / 0.1) % 2 else 0
    gpus.hertz = lambda card, seconds: HERTZ / (1.5 if nvml.held(card, seconds) else 1.0)
    gpus.spin_hertz = HERTZ
    processes, hardware = read(gpus, budget=3.0)
    device = processes["device"]
    assert device.median_seconds == pytest.approx(DEVICE, rel=0.01)
    assert max(device.raw_samples) < 1.1 * DEVICE
    assert device.blocks_taken > len(device.samples)
    assert device.throttled == {}
    assert throttled(device) is None
    assert hardware["throttled_blocks"]["power cap"] > 0  # type: ignore[index]


def test_a_card_that_stays_held_down_is_flagged_with_the_reason(gpus: Gpus, nvml: PaperNvml) -> None:
    nvml.held = lambda card, seconds: POWER_CAP | THERMAL if card == 1 else 0
    processes, hardware = read(gpus)
    assert processes["device"].throttled == {"power cap": 8, "software thermal slowdown": 8}
    said = throttled(processes["device"])
    assert said == "power cap, software thermal slowdown; 8 of 8 samples, down to 100 % of the clock"
    assert throttled(processes["throughput"]) is not None, "the device sets it"
    assert throttled(processes["dispatch"]) is None, "the host sets it"
    assert set(hardware["throttled_blocks"]) == {"power cap", "software thermal slowdown"}  # type: ignore[call-overload]


def test_what_another_card_is_held_down_by_is_its_own_affair(gpus: Gpus, nvml: PaperNvml) -> None:
    nvml.held = lambda card, seconds: POWER_CAP if card == 0 else 0
    processes, _ = read(gpus)
    assert throttled(processes["device"]) is None


def test_the_counters_tell_what_happened_while_nobody_asked(gpus: Gpus, nvml: PaperNvml) -> None:
    nvml.counted = lambda seconds: int(0.5e9 * seconds)  # held down half of the time, and never when asked
    processes, _ = read(gpus)
    assert processes["device"].throttled == {"power cap": 8}
    nvml.counted = lambda seconds: int(0.01e9 * seconds)  # a hundredth is little
    processes, _ = read(gpus)
    assert processes["device"].throttled == {}


def test_a_clock_that_fell_without_a_reason_is_flagged_by_the_probe(
    gpus: Gpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)
    start = gpus.clock.seconds
    gpus.hertz = lambda card, seconds: HERTZ * (1.0 if int((seconds - start) / 0.01) % 5 == 0 else 0.7)
    processes, hardware = read(gpus, samples=12, budget=0.1)
    said = throttled(processes["device"])
    assert said is not None
    assert said.startswith("no reason is known; ")
    assert "down to 70 % of the clock" in said
    assert hardware["unwatched"] == NOT_INSTALLED


def test_nvml_is_asked_between_blocks_only_and_cheaply(gpus: Gpus, nvml: PaperNvml) -> None:
    nvml.counted = lambda seconds: 0
    gpus.log.clear()
    asked_at: list[int] = []
    answer = nvml._answer

    def note(name: str, value: object) -> object:
        asked_at.append(len(gpus.log))
        return answer(name, value)

    nvml._answer = note
    device = CudaOnPaper("cuda:1", gpus.clock)
    with device.session():
        sampler = Sampler(device, gpus.call(HOST, DEVICE), 0.3)
        sampler.read_together(("device",), 4)
        facts = device.watch.facts() if device.watch is not None else {}
    # Whenever it is asked, the last thing that happened on the card was waited for.
    before = {gpus.log[count - 1][0] for count in asked_at if count}
    assert before <= {"synchronise", "spin"}
    assert facts["seconds_a_reading"] == pytest.approx(4 * nvml.cost, rel=0.01)


def test_a_slice_is_watched_by_its_card(gpus: Gpus, nvml: PaperNvml, monkeypatch: pytest.MonkeyPatch) -> None:
    def by_uuid(uuid: str) -> object:
        if uuid == "MIG-77":
            return "slice"
        raise RuntimeError("Not Found")

    monkeypatch.setattr(nvml, "nvmlDeviceGetHandleByUUID", by_uuid, raising=False)
    monkeypatch.setattr(
        nvml,
        "nvmlDeviceGetDeviceHandleFromMigDeviceHandle",
        lambda part: 1 if part == "slice" else None,
        raising=False,
    )
    watch = NvmlWatch("77")
    assert watch.read().celsius == 61
    watch.close()


@pytest.mark.parametrize(
    "question", ["nvmlInit", "nvmlDeviceGetHandleByUUID", "nvmlDeviceGetCurrentClocksThrottleReasons"]
)
def test_without_permission_one_sentence_says_so_and_nothing_fails(
    gpus: Gpus, nvml: PaperNvml, monkeypatch: pytest.MonkeyPatch, question: str
) -> None:
    def refuse(*_: object) -> None:
        raise RuntimeError("Insufficient Permissions")

    monkeypatch.setattr(nvml, question, refuse)
    if question == "nvmlDeviceGetHandleByUUID":
        monkeypatch.setattr(nvml, "nvmlDeviceGetDeviceHandleFromMigDeviceHandle", refuse, raising=False)
    with pytest.raises(Unwatched, match=r"^clock and throttling are not watched: NVML says Insufficient"):
        NvmlWatch(UUIDS[0])
    processes, hardware = read(gpus)
    assert processes["device"].median_seconds == pytest.approx(DEVICE, rel=0.01)
    assert hardware["unwatched"] == "clock and throttling are not watched: NVML says Insufficient Permissions"


def test_a_question_that_is_refused_later_costs_its_own_fact(gpus: Gpus, nvml: PaperNvml) -> None:
    watch = NvmlWatch(UUIDS[1])
    for name in ("nvmlDeviceGetTemperature", "nvmlDeviceGetClockInfo"):
        setattr(nvml, name, None)  # calling it raises
    state = watch.read()
    assert (state.hertz, state.celsius, state.reasons) == (None, None, ())
    watch.close()
