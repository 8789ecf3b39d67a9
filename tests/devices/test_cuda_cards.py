"""The real CUDA backend on several GPUs of paper: every piece of work goes to the card that is named, and in order."""

import re
import sys
from itertools import groupby

import pytest
import torch

from accel_micro import devices
from accel_micro.devices import peaks
from accel_micro.host.cards import fingerprint
from accel_micro.measure.process import Process
from accel_micro.measure.sampling import Sampler
from tests.devices.gpus import HERTZ, UUIDS, CudaOnPaper, Gpus
from tests.fake import Clock

HOST, DEVICE = 10e-6, 40e-6


@pytest.fixture
def gpus(monkeypatch: pytest.MonkeyPatch) -> Gpus:
    gpus = Gpus(Clock())
    gpus.install(monkeypatch)
    monkeypatch.setitem(sys.modules, "pynvml", None)
    return gpus


def read(gpus: Gpus, name: str, *clocks: str) -> dict[str, Process]:
    device = CudaOnPaper(name, gpus.clock)
    with device.session():
        processes, unreadable = Sampler(device, gpus.call(HOST, DEVICE), 0.3).read_together(clocks, 5)
    assert not unreadable
    return processes


@pytest.mark.parametrize("card", [0, 1])
def test_all_clocks_are_those_of_the_card_that_is_named(gpus: Gpus, card: int) -> None:
    gpus.hertz = lambda card, seconds: HERTZ / (1 + card)
    read_ = read(gpus, f"cuda:{card}", "throughput", "latency", "dispatch", "device")
    slower = DEVICE * (1 + card)
    assert read_["device"].median_seconds == pytest.approx(slower, rel=0.01)
    assert read_["throughput"].median_seconds == pytest.approx(slower, rel=0.01)
    assert read_["latency"].median_seconds == pytest.approx(HOST + slower, rel=0.01)
    assert read_["dispatch"].median_seconds == pytest.approx(HOST, rel=0.01)
    assert read_["device"].probe["reference"] == pytest.approx(HERTZ / (1 + card), rel=0.02)
    assert {where for _, where in gpus.log} == {card}
    assert gpus.current == 0, "the session gives the current card back"


def test_waiting_for_another_card_changes_the_number(gpus: Gpus) -> None:
    class WaitsForAnother(CudaOnPaper):
        def synchronize(self) -> None:
            torch.cuda.synchronize(1 - self.index)

    device = WaitsForAnother("cuda:1", gpus.clock)
    with device.session():
        process = Sampler(device, gpus.call(HOST, DEVICE), 0.3).read("throughput", 5)
    assert process.median_seconds == pytest.approx(HOST, rel=0.01)


def test_order_of_execution(gpus: Gpus) -> None:
    device = CudaOnPaper("cuda:1", gpus.clock)
    with device.session():
        sampler = Sampler(device, gpus.call(1e-3, 0.5e-3), 0.1)
        gpus.log.clear()
        sampler.first_call()
        assert [what for what, _ in gpus.log] == ["synchronise", "call", "synchronise"]
        sampler.warm_up()
        gpus.log.clear()
        sampler.read_together(("throughput", "dispatch", "device"), 2)
    steps = [(what, len(list(run))) for what, run in groupby(what for what, _ in gpus.log)]
    short = {"spin": "p", "synchronise": "s", "call": "c", "replay": "r"}
    letters = "".join(short[what] for what, _ in steps)
    dispatch = "(?:pcs)+"  # calls behind a spin, waited for after the clock was read; again if the spin was too short
    probe = "p"  # a short spin ahead and the one that is read
    replays = "sprs"
    throughput = "scscscs"  # some calls to wake up, n and 3n
    assert re.search(f"(?:{dispatch}{probe}{replays}{probe}{throughput}){{2}}$", letters), letters
    waking, n, three_n = [count for what, count in steps[-6:] if what == "call"]
    assert (waking, three_n) == (n // 2, 3 * n)


def test_memory_and_facts_are_those_of_the_card(gpus: Gpus) -> None:
    for card in range(2):
        device = CudaOnPaper(f"cuda:{card}", gpus.clock)
        with device.session():
            assert device.peak_memory_bytes(lambda: None) == gpus.allocated[card]
        assert device.free_memory_bytes() == gpus.allocated[card]
        assert device.card() == fingerprint(UUIDS[card])


def test_peaks_and_speeds_of_two_cards_are_kept_apart(gpus: Gpus) -> None:
    first, second = (CudaOnPaper(f"cuda:{card}", gpus.clock) for card in range(2))
    assert peaks.machine_key(first) != peaks.machine_key(second)
    gpus.hertz = lambda card, seconds: HERTZ / (1 + card)
    for card in range(2):  # one at half the clock is not taken for a slow moment of the other
        process = read(gpus, f"cuda:{card}", "device")["device"]
        assert "low clock" not in {flag.name for flag in process.flags}
    gpus.hertz = lambda card, seconds: HERTZ / 2
    process = read(gpus, "cuda:0", "device")["device"]
    assert "low clock" in {flag.name for flag in process.flags}


def test_without_a_uuid_cards_go_by_their_address_else_by_their_index(
    gpus: Gpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    bare = gpus.properties(1)
    del bare.uuid
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda card: bare)
    device = CudaOnPaper("cuda:1", gpus.clock)
    assert device.card() == "number 1"
    bare.pci_domain_id, bare.pci_bus_id, bare.pci_device_id = 0, 25, 0
    assert device.card() == "pci 0:25:0"
    with device.session():
        assert (
            device.unwatched
            == "clock and throttling are not watched: this torch does not tell the card's UUID"
        )


def test_a_torch_without_a_spin_offers_no_clock_behind_a_busy_queue(
    gpus: Gpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(torch.cuda, "_sleep")
    device = CudaOnPaper("cuda", gpus.clock)
    assert device.clocks == ("throughput", "latency")
    with device.session():
        assert device.probe_device_speed() is None
        with pytest.raises(NotImplementedError):
            device.queue(gpus.call(HOST, DEVICE))
        with pytest.raises(
            ValueError, match=r"has no device clock, since this torch has no torch.cuda._sleep"
        ):
            Sampler(device, gpus.call(HOST, DEVICE), 0.3).read("device")


def test_an_index_beyond_the_last_is_said(gpus: Gpus) -> None:
    assert devices.get("cuda:1").unavailable() is None
    assert devices.get("cuda:2").unavailable() == "cuda:2 does not exist: this machine shows torch 2 GPUs"
