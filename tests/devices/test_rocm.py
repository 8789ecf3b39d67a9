"""ROCm on paper: the clocks behind a busy queue are offered where spin and graph were shown to work, else refused."""

import sys
from types import SimpleNamespace

import pytest
import torch

from accel_micro import devices, profiles
from accel_micro.devices import peaks, proof
from accel_micro.devices.proof import Proof, prove
from accel_micro.measure.case import _uses_tf32
from accel_micro.measure.process import Process
from accel_micro.measure.records import Case
from accel_micro.measure.sampling import Sampler
from tests.devices.gpus import HERTZ, CudaOnPaper, Gpus
from tests.fake import Clock, FakeDevice

HOST, DEVICE = 10e-6, 40e-6
ALL = ("throughput", "latency", "dispatch", "device")


@pytest.fixture
def gpus(monkeypatch: pytest.MonkeyPatch) -> Gpus:
    gpus = Gpus(Clock())
    gpus.install(monkeypatch, hip="7.0.51831")
    monkeypatch.setitem(sys.modules, "pynvml", None)
    return gpus


def device_of(gpus: Gpus, name: str = "cuda:1") -> CudaOnPaper:
    return CudaOnPaper(name, gpus.clock)


@pytest.mark.parametrize("spin_hertz", [None, 100e6], ids=["ticks of the cores", "ticks of a constant clock"])
def test_a_spin_that_spins_gives_all_clocks(gpus: Gpus, spin_hertz: float | None) -> None:
    gpus.spin_hertz = spin_hertz
    device = device_of(gpus)
    assert device.clocks == ALL
    assert {where for _, where in gpus.log} == {1}, "shown on the card itself"
    gpus.spin_hertz = None  # replays of calls run at the cores' clock
    with device.session():
        processes, unreadable = Sampler(device, gpus.call(HOST, DEVICE), 0.3).read_together(ALL, 5)
    assert not unreadable
    assert processes["device"].median_seconds == pytest.approx(DEVICE, rel=0.01)
    assert processes["dispatch"].median_seconds == pytest.approx(HOST, rel=0.01)


@pytest.mark.parametrize("share_slow", [1.0, 0.75], ids=["slow host", "host that changes"])
def test_a_slow_host_is_not_called_a_slow_gpu(gpus: Gpus, share_slow: float) -> None:
    def read() -> dict[str, Process]:
        with device.session():
            return Sampler(device, gpus.call(HOST, DEVICE), 0.3).read_together(ALL, 20)[0]

    fast = FakeDevice(Clock())
    Sampler(fast, fast.call, 0.1).read("throughput")  # leaves the full speed behind
    device = device_of(gpus)
    read()  # what the next process would be held against
    gpus.clock.speed = lambda seconds: 1 / 1.5 if 5 * seconds % 1 < share_slow else 1.0
    processes = read()
    for clock in ("device", "throughput"):
        assert processes[clock].median_seconds == pytest.approx(DEVICE, rel=0.01)
        assert {flag.name for flag in processes[clock].flags} <= {"gaps counted"}


def test_a_spin_that_does_not_spin_leaves_throughput_and_latency(gpus: Gpus) -> None:
    gpus.ticks = lambda cycles: 10.0
    device = device_of(gpus)
    assert device.clocks == ("throughput", "latency")
    assert device.lacks["dispatch"] == device.lacks["device"]
    with device.session():
        sampler = Sampler(device, gpus.call(HOST, DEVICE), 0.3)
        assert sampler.read("throughput", 5).median_seconds == pytest.approx(DEVICE, rel=0.01)
        with pytest.raises(
            ValueError, match=r"has no device clock, since twice the ticks of torch.cuda._sleep take"
        ):
            sampler.read("device")
        with pytest.raises(NotImplementedError):
            device.queue(gpus.call(HOST, DEVICE))
    assert device.probe_device_speed() is None


@pytest.mark.parametrize(
    ("ticks", "said"),
    [
        (lambda cycles: 1e6, "twice the ticks of torch.cuda._sleep take 1 times as long here (500 µs"),
        (lambda cycles: cycles**2 / 1e6, "take 4 times as long"),
        (lambda cycles: cycles / 100, "(7 µs for a million)"),
    ],
    ids=["constant", "square", "too short"],
)
def test_a_spin_of_another_length_is_told_by_how_much(gpus: Gpus, ticks: "object", said: str) -> None:
    gpus.ticks = ticks  # type: ignore[assignment]
    assert said in device_of(gpus).lacks["dispatch"]


def test_a_spin_that_the_host_waits_for_is_none(gpus: Gpus, monkeypatch: pytest.MonkeyPatch) -> None:
    def waits(cycles: int) -> None:
        gpus.sleep(cycles)
        gpus.synchronize()

    monkeypatch.setattr(torch.cuda, "_sleep", waits)
    assert device_of(gpus).lacks["dispatch"] in (
        "the host waits while torch.cuda._sleep spins",
        device_of(gpus).lacks["device"],
    )


def test_a_graph_that_does_not_replay_all_costs_the_device_clock_alone(gpus: Gpus) -> None:
    gpus.graph_repeats = lambda count: 1
    device = device_of(gpus)
    assert device.clocks == ("throughput", "latency", "dispatch")
    assert device.lacks == {"device": "a graph of two spins takes 1 times as long as a graph of one"}


def test_whatever_is_raised_is_a_reason(gpus: Gpus, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("HIP error: invalid argument\nand more")

    monkeypatch.setattr(torch.cuda, "CUDAGraph", fail)
    assert device_of(gpus).lacks == {"device": "graphs fail: HIP error: invalid argument"}
    monkeypatch.setattr(torch.cuda, "_sleep", fail)
    assert device_of(gpus).lacks["device"] == "torch.cuda._sleep fails: HIP error: invalid argument"
    monkeypatch.delattr(torch.cuda, "_sleep")
    assert "no torch.cuda._sleep" in device_of(gpus).lacks["dispatch"]


def test_a_proof_is_remembered_and_a_failure_is_not(gpus: Gpus) -> None:
    gpus.ticks = lambda cycles: 10.0
    assert "device" in device_of(gpus).lacks
    gpus.ticks = lambda cycles: cycles
    assert not device_of(gpus).lacks
    gpus.log.clear()
    assert not device_of(gpus).lacks
    assert gpus.log == []
    assert not device_of(gpus, "cuda:0").lacks
    assert gpus.log, "another card needs a proof of its own"


def test_a_machine_without_the_card_is_asked_for_no_proof(gpus: Gpus) -> None:
    device = device_of(gpus, "cuda:2")
    assert device.unavailable() is not None
    assert device.clocks == ("throughput", "latency")
    assert gpus.log == []


def test_it_is_called_rocm_by_its_architecture(gpus: Gpus) -> None:
    facts = device_of(gpus).describe()
    assert (facts["platform"], facts["hip"], facts["architecture"]) == ("ROCm", "7.0.51831", "gfx942")
    assert "cuda" not in facts and "compute_capability" not in facts
    with device_of(gpus).session():
        pass  # nothing of NVIDIA's is asked


def test_tf32_means_nothing_there(gpus: Gpus, monkeypatch: pytest.MonkeyPatch) -> None:
    device = device_of(gpus)
    assert torch.backends.cudnn.allow_tf32, "the switch is on where nobody touched it"
    assert not any("tf32" in name for name in device.precision())
    case = Case("conv.conv2d", "forward", "cuda", "float32", "n=1")
    assert not _uses_tf32(case, device, True) and not _uses_tf32(case, device, False)
    asked: list[str] = []
    monkeypatch.setattr(peaks, "_measure_flops", lambda device, kind: asked.append(kind) or 1e12)  # type: ignore[func-returns-value]
    assert peaks.flops_per_second(device, "tf32") == 1e12
    assert asked == ["float32"]
    monkeypatch.setattr(torch.version, "hip", None)
    assert _uses_tf32(case, device, True)


def test_the_reason_reaches_whoever_asks_why_a_case_is_not_run(
    gpus: Gpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    gpus.ticks = lambda cycles: 10.0
    monkeypatch.setattr(devices.registry, "DEVICE_KINDS", ("cuda",))
    found = devices.available()["cuda"]
    op = {"clock": "device", "shapes": {"quick": ["n=1"]}, "dtypes": ["float32"]}
    why = profiles.why_skipped(profiles.get("quick"), op, "cuda", "float32", "n=1", {"cuda": found})
    assert why is not None
    assert why.startswith("cuda has no device clock: twice the ticks of torch.cuda._sleep take")


def test_proving_needs_nothing_but_the_names_of_torch_cuda() -> None:
    assert prove(SimpleNamespace(), float) == Proof(
        *["this torch has no torch.cuda._sleep to keep the queue busy with"] * 2
    )
    assert proof._TICKS / HERTZ > proof._SHORTEST_SECONDS
