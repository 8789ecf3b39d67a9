"""All facts of the host, grouped and each with its source; and the few stable ones for asv's machine file."""

from collections.abc import Callable
from typing import Any

from accel_micro.host import accelerators, load, processor, system


class Gathered:
    """Facts by dotted name (`cpu.governor`), where each was read, and what went wrong with a group."""

    def __init__(self) -> None:
        self.values: dict[str, Any] = {}
        self.sources: dict[str, str] = {}
        self.unread: dict[str, str] = {}

    def put(self, name: str, value: Any, source: str) -> None:
        """Keep a fact, unless it could not be read."""
        if value is not None:
            self.values[name] = value
            self.sources[name] = source

    def run(self, group: str, gather: Callable[..., None], *arguments: Any) -> None:
        """Let `gather` put its facts. What it raises costs the rest of its own and is noted in `unread`."""
        try:
            gather(self.put, *arguments)
        except Exception as error:  # any foreign file, library or driver may fail in its own way
            self.unread[group] = f"{type(error).__name__}: {error}"

    def grouped(self) -> dict[str, Any]:
        """{group: {fact: value}}, with `sources` and `unread` beside the groups. Plain data for JSON."""
        groups: dict[str, Any] = {}
        for name, value in self.values.items():
            group, dot, fact = name.partition(".")
            if dot:
                groups.setdefault(group, {})[fact] = value
            else:
                groups[group] = value
        return {**groups, "sources": self.sources, "unread": self.unread}


def facts(interval_seconds: float = 0.5) -> dict[str, Any]:
    """Everything that can be read about this machine now, grouped as `{"cpu": {"governor": …}, …}`.

    Never raises. A fact that cannot be read is absent. `sources` says by dotted name where a fact was read,
    `unread` why a group is incomplete. Plain data for JSON. Loads are observed over `interval_seconds`; the
    first call on a kind of processor needs a second more.
    """
    gathered = Gathered()
    gathered.run("cpu", processor.gather)
    gathered.run("system", system.gather)
    gathered.run("memory", system.gather_memory)
    gathered.run("python", system.gather_python)
    gathered.run("load", load.gather, interval_seconds)
    gathered.run("load", load.gather_state)
    gathered.run("power", load.gather_power)
    gathered.run("gpu", accelerators.gather)
    return gathered.grouped()


def machine_facts() -> dict[str, str]:
    """What distinguishes this machine from others, for asv's machine file: names to short texts.

    asv draws a graph of its own for every combination of these, so nothing here changes from day to day: no
    load, no clock, no kernel patch level; memory is rounded to whole GiB.
    """
    gathered = Gathered()
    gathered.run("cpu", processor.gather)
    gathered.run("system", system.gather)
    gathered.run("memory", system.gather_memory)
    gathered.run("gpu", accelerators.gather)
    return stable(gathered.values)


def stable(values: dict[str, Any]) -> dict[str, str]:
    """The rule of `machine_facts`, on facts by dotted name."""
    memory = [values[name] for name in ("memory.total_bytes", "memory.limit_bytes") if name in values]
    gpus = values.get("gpu.devices", [])
    found: dict[str, Any] = {
        "cpu": values.get("cpu.model"),
        "cpu_cores_allowed": values.get("cpu.allowed_cores"),
        "ram": _gib(min(memory, default=None)),
        "arch": values.get("system.architecture"),
        "os": values.get("system.os"),
        "virtual_machine": values.get("system.virtual_machine"),
        "container": values.get("system.container"),
        "gpu": _each(gpu.get("name") for gpu in gpus),
        "gpu_count": len(gpus) or None,
        "gpu_memory": _each(_gib(gpu.get("memory_bytes")) for gpu in gpus),
        "gpu_driver": _each(gpu.get("driver") for gpu in gpus),
    }
    return {name: str(value) for name, value in found.items() if value is not None}


def _gib(size: float | None) -> str | None:
    return None if size is None else f"{round(size / (1 << 30))} GiB"


def _each(texts: Any) -> str | None:
    """The different texts, in order."""
    return ", ".join(dict.fromkeys(str(text) for text in texts if text)) or None
