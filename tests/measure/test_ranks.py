"""Other ranks: what the first gets from them, and that they leave with it."""

import subprocess
import sys
import textwrap
import time
from typing import Any

import psutil
import pytest
import torch
import torch.distributed as dist

from accel_micro.measure import ranks
from accel_micro.measure.inputs import Inputs, Timed

CPU = torch.device("cpu")


def _sum(numbers: torch.Tensor, size: int) -> Any:
    return ranks.restarting(numbers, dist.all_reduce)


def together(dtype: torch.dtype, reference: bool) -> tuple[Inputs, Timed]:
    t = Inputs(CPU, dtype, reference=reference)
    return t, ranks.together(t, _sum, 100, expected=sum)  # type: ignore[arg-type]


def test_all_ranks_add_their_own_numbers_in_every_call() -> None:
    _, reference = together(torch.float32, True)
    expected = reference.result()
    t, timed = together(torch.float32, False)
    assert not torch.allclose(2 * t.made[0].double(), expected), "the ranks draw different numbers"
    (context,) = t.contexts
    with context():
        for call in range(1, 131):  # twice 64: the sums are taken anew
            timed.call()
            if call in (1, 65, 129):
                assert torch.allclose(timed.result().double(), expected, rtol=1e-6)
        assert torch.isfinite(timed.result()).all()
        # Other children may be those of other tests: torch.compile keeps its workers.
        others = [
            child for child in psutil.Process().children() if "accel_micro.measure.ranks" in child.cmdline()
        ]
    assert others
    assert not dist.is_initialized()
    assert not any(child.is_running() and child.status() != psutil.STATUS_ZOMBIE for child in others)


def test_others_end_when_the_first_is_killed() -> None:
    program = """
        import sys, time
        from tests.measure.test_ranks import together
        import torch
        t, timed = together(torch.float32, False)
        with t.contexts[0]():
            timed.call()
            print("met", flush=True)
            time.sleep(60)
        """
    first = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(program)], stdout=subprocess.PIPE, text=True
    )
    assert first.stdout is not None and "met\n" in first.stdout  # some versions of gloo print before
    others = psutil.Process(first.pid).children(recursive=True)
    assert others
    first.kill()
    first.wait()
    first.stdout.close()
    end = time.monotonic() + 20
    while any(other.is_running() and other.status() != psutil.STATUS_ZOMBIE for other in others):
        assert time.monotonic() < end, "a rank lives on"
        time.sleep(0.1)


@pytest.mark.parametrize(
    ("device", "patch", "reason"),
    [
        ("mps", {}, "not timed on mps"),
        ("cuda", {"is_nccl_available": lambda: False}, "no NCCL"),
        ("cuda", {"is_nccl_available": lambda: True}, "need two of them"),
        ("cpu", {"is_gloo_available": lambda: False}, "no gloo"),
        ("cpu", {"is_available": lambda: False}, r"no torch\.distributed"),
    ],
)
def test_without_a_second_rank_the_reason_is_said(
    device: str, patch: dict[str, Any], reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in patch.items():
        monkeypatch.setattr(dist, name, value)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    with pytest.raises(NotImplementedError, match=reason):
        ranks.world_size(torch.device(device))
