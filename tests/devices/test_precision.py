"""How float32 is multiplied is told for every combination of torch's switches, and never raises."""

import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from accel_micro.devices.precision import MIXED, allows_tf32, float32_modes, newer

MIXING = """
import torch
from accel_micro import devices
torch.backends.mkldnn.matmul.fp32_precision = "bf16"
modes = devices.get("cpu").precision()
assert modes["mkldnn_matmul_precision"] == "bf16", modes
print(modes["float32_matmul_precision"])
"""


def test_what_is_at_its_default_is_not_noted() -> None:
    assert float32_modes(mkldnn_matmul_precision="mkldnn.matmul", other="no.such.place") == {
        "float32_matmul_precision": "highest"
    }


@pytest.mark.skipif(newer("mkldnn.matmul") == "none" and not hasattr(torch.backends.mkldnn, "matmul"),
                    reason="this torch has no newer switches")  # fmt: skip
def test_mixed_switches_are_told_and_do_not_raise() -> None:
    """In a process of its own: torch warns once, and the switch is global."""
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", MIXING], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() in (MIXED, "highest", "high", "medium")


def test_an_older_switch_that_raises_gives_way_to_the_newer(monkeypatch: pytest.MonkeyPatch) -> None:
    class Contradicted:
        @property
        def allow_tf32(self) -> bool:
            raise RuntimeError("mix of the legacy and new APIs")

    monkeypatch.setattr(torch.backends.cuda, "matmul", SimpleNamespace(fp32_precision="tf32"))
    backend: Any = Contradicted()
    assert allows_tf32(backend, "cuda.matmul") and not allows_tf32(backend, "no.such.place")
    assert not allows_tf32(
        SimpleNamespace(allow_tf32=False), "cuda.matmul"
    )  # what the older says counts first
