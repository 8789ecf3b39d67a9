"""On a real AMD GPU: whatever is offered there holds; nothing here has ever run on one."""

import pytest
import torch

from accel_micro import devices
from accel_micro.measure.sampling import Sampler, opened

pytestmark = [
    pytest.mark.cuda,
    pytest.mark.skipif(not torch.cuda.is_available() or torch.version.hip is None, reason="needs an AMD GPU"),
]


def test_it_says_that_it_is_rocm_and_what_it_lacks() -> None:
    device = devices.get("cuda")
    facts = device.describe()
    assert facts["platform"] == "ROCm"
    assert str(facts["architecture"]).startswith("gfx")
    assert {"throughput", "latency"} <= set(device.clocks)
    for clock in ("dispatch", "device"):
        assert (clock in device.clocks) != (clock in device.lacks)


def test_the_clocks_that_are_offered_agree_with_throughput() -> None:
    with opened("cuda") as device:
        a, b = (torch.randn(4096, 4096, device="cuda") for _ in range(2))
        clocks = [clock for clock in ("throughput", "dispatch", "device") if clock in device.clocks]
        processes, _ = Sampler(device, lambda: a @ b, 0.3).read_together(clocks, 5)
        throughput = processes["throughput"].median_seconds
        if "device" in processes:  # a product of that size is bound by the device
            assert processes["device"].median_seconds == pytest.approx(throughput, rel=0.2)
        if "dispatch" in processes:
            assert processes["dispatch"].median_seconds < throughput
