"""Two GPUs on paper for the real asv: a program that lists them, and a torch that is said to have them.

Every process of a run imports `sitecustomize` from the folder that `plant` makes, so asv's own process, the one that
says which devices there are, and benchmark processes all see the same two cards.
"""

from pathlib import Path

from tests.asv_plugin.conftest import Suite
from tests.host.machines import TWO_CARDS

SITE = """
from accel_micro.devices.cuda import Cuda

Cuda.unavailable = lambda self: None if self.index < 2 else f"{self.name} does not exist: there are 2 GPUs"
Cuda.lacks = {"dispatch": "it is on paper", "device": "it is on paper"}
"""

PROGRAM = """#!/bin/sh
case "$*" in
    *--query-gpu=index,uuid,name*) printf '%s\\n' {lines} ;;
    *) exit 1 ;;
esac
"""

# The process says on which device it was told to be; a shape `hold=1` stays there until it is ended.
OPS = """
from accel_micro.devices.chosen import name_of
from accel_micro.measure.records import Record as _Record


def told(self, direction, *parameters, clocks, samples=None, budget_seconds=None):
    record = answer(self, direction, *parameters, clocks=clocks, samples=samples, budget_seconds=budget_seconds)
    return _Record(record.case, clocks=record.clocks, hardware={"device": name_of(parameters[0])})


OpBenchmark.run = told


@op(quick=["hold=0", "hold=1"], backward=False, dtypes=["float32"])
def waits(t, hold):
    if hold:
        time.sleep(100)
"""


def plant(suite: Suite, folder: Path) -> None:
    """Give the machine of a suite two GPUs, and the suite an op."""
    site, programs = folder / "site", folder / "programs"
    site.mkdir()
    programs.mkdir()
    (site / "sitecustomize.py").write_text(SITE)
    listed = " ".join(f"'{card.number}, {card.uuid}, {card.name}'" for card in TWO_CARDS)
    program = programs / "nvidia-smi"
    program.write_text(PROGRAM.format(lines=listed))
    program.chmod(0o755)
    suite.environment["PATH"] = f"{programs}:{suite.environment['PATH']}"
    suite.environment["PYTHONPATH"] = f"{site}:{suite.environment['PYTHONPATH']}"
    suite.environment["ASV_PYTHONPATH"] = str(site)
    for name in ("CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER"):
        suite.environment.pop(name, None)
    suite.add("ops", OPS)
