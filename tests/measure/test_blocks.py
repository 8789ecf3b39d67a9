"""Blocks of a device that counts what it does, and of one that limits how many calls may be queued."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from accel_micro.devices.base import Counted
from accel_micro.measure.blocks import Blocks, Rejected
from accel_micro.measure.plausibility import not_the_op_alone
from accel_micro.measure.sampling import Sampler
from tests.fake import Clock, FakeDevice


class CountingDevice(FakeDevice):
    """Counts executions, and reports what `story` makes of the number of the block and its calls."""

    def __init__(self, story: Callable[[int, int], Counted], most: int | None = None) -> None:
        super().__init__(Clock(), host_seconds=10e-6, asynchronous=True)
        self.story, self.most = story, most
        self.blocks = 0
        self.longest = 0

    @contextmanager
    def block(self) -> Iterator[Counted]:
        counted, before = Counted(), self.calls
        yield counted
        calls = self.calls - before
        self.longest = max(self.longest, calls)
        counted.__dict__.update(self.story(self.blocks, calls).__dict__)
        self.blocks += 1

    def most_calls(self, result: Any) -> int | None:
        return self.most


def honest(block: int, calls: int) -> Counted:
    return Counted(executions=calls)


def test_blocks_whose_counters_agree_are_taken() -> None:
    device = CountingDevice(honest)
    process = Sampler(device, device.call, 0.3).read("throughput")
    assert process.median_seconds == pytest.approx(10e-6, rel=0.01)


def test_a_block_that_compiled_is_read_again() -> None:
    device = CountingDevice(
        lambda block, calls: Counted(calls, calls, int(block == 1), 0.2 if block == 1 else 0.0)
    )
    blocks = Blocks(device, device.call)
    blocks.first_call()
    device.clock.seconds, before = 0.0, device.calls
    assert blocks.seconds_of(10) == pytest.approx(100e-6, rel=0.01)
    assert device.calls - before == 20, "the block with the compilation, and the one that counts"
    assert device.blocks == 3


@pytest.mark.parametrize(
    ("counted", "sentence"),
    [
        (Counted(9), r"9 of 10 calls were executed: results are dropped"),
        (Counted(10, 1), r"1 of 10 calls had been executed when the time was read"),
        (
            Counted(10, 10, 10, 1.5),
            r"10 programs were compiled in 10 calls, which took 1\.5 s: shapes or constants",
        ),
        (
            Counted(10, on_host=("aten::bincount",)),
            r"aten::bincount ran on the CPU, since fake has no kernel",
        ),
    ],
)
def test_blocks_that_are_never_the_op_alone_are_rejected_with_the_reason(
    counted: Counted, sentence: str
) -> None:
    device = CountingDevice(lambda block, calls: counted)
    blocks = Blocks(device, device.call)
    with pytest.raises(Rejected, match=sentence):
        blocks.seconds_of(10)
    with pytest.raises(Rejected, match=sentence):
        blocks.latency(10)
    assert device.blocks == 6


def test_a_backend_that_counts_nothing_is_not_judged() -> None:
    assert not_the_op_alone(Counted(), 10, "cpu") is None
    assert (
        not_the_op_alone(Counted(executions=11, finished=11), 10, "xla") is None
    )  # an op may need more than one program


@pytest.mark.parametrize("most", [1, 2, 3, 7, 50])
def test_no_block_has_more_calls_than_the_device_allows(most: int) -> None:
    device = CountingDevice(honest, most)
    sampler = Sampler(device, device.call, 0.1)
    for clock in ("throughput", "latency"):
        assert sampler.read(clock, 3).median_seconds == pytest.approx(10e-6, rel=0.05)
    assert device.longest <= max(most, 3), "a slope needs n and 3n, so three calls at least"
