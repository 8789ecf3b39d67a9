"""asv's machine file, written without asking, with the accelerator and the cores in it.

asv asks six questions at a terminal and fails elsewhere. Its answers have defaults; what matters here besides
(GPU, driver, cores that may be used) is measured. Extra keys become filters on asv's page.
"""

from collections.abc import Callable
from typing import Any

from asv.machine import Machine, MachineCollection
from asv.util import UserError

from accel_micro import host
from accel_micro.asv_plugin import patching


def install() -> None:
    """Fill the machine file in when a run loads it."""

    def make(original: Callable[..., Any]) -> Callable[..., Any]:
        def load(
            cls: Any,
            interactive: bool = False,
            force_interactive: bool = False,
            _path: str | None = None,
            machine_name: str | None = None,
            **options: Any,
        ) -> Any:
            if interactive and not force_interactive:
                machine_name = machine_name or cls.get_unique_machine_name()
                known = _known(machine_name, _path)
                # The user's own answers stay; facts are read anew, since drivers change.
                facts = {**cls.get_defaults(), "machine": machine_name, **known, **host.machine_facts()}
                MachineCollection.save(facts["machine"], facts, _path=_path)
            return original(cls, interactive, force_interactive, _path, machine_name, **options)

        return load

    patching.replace(
        Machine, "load", make, takes=("interactive", "force_interactive", "_path", "machine_name")
    )


def is_this(name: str) -> bool:
    """Whether results of a machine of that name are this one's: it is called so, or was in an earlier run."""
    return name == Machine.get_unique_machine_name() or bool(_known(name, None))


def _known(name: str, path: str | None) -> dict[str, Any]:
    try:
        return dict(MachineCollection.load(name, _path=path))
    except UserError:
        return {}
