"""Run in an environment, `python -m accel_micro.asv_plugin.prepare`: prints its devices and its torch.

One process an environment answers for all cases, before any of their processes is started.
"""

import json
from typing import Any, Final

MARK: Final = "accel_micro prepare: "
"""Starts the line that holds the answer; torch and drivers may print others."""

REQUEST: Final = "accel_micro prepare"
"""Given to a fork server in place of a benchmark, this is what its process is to do, see `timing`."""


def prepare() -> dict[str, Any]:
    """`devices` (see `devices.available`) and `torch` (see `host.torch_facts`) of this interpreter."""
    from accel_micro import devices, host

    return {"devices": devices.available(), "torch": host.torch_facts()}


def read(output: str) -> dict[str, Any] | None:
    """The answer in what a process printed, or None when it is not there."""
    for line in output.splitlines():
        if line.startswith(MARK):
            try:
                answer = json.loads(line.removeprefix(MARK))
            except ValueError:
                return None
            return answer if isinstance(answer, dict) and "devices" in answer else None
    return None


def answer() -> None:
    """Print the answer."""
    print(MARK + json.dumps(prepare()), flush=True)


if __name__ == "__main__":
    answer()
