"""asv's machine file, written without asking, with the accelerator and the cores in it; and a machine's name.

asv asks six questions at a terminal and fails elsewhere. Its answers have defaults; what matters here besides
(GPU, driver, cores that may be used) is measured. Extra keys become filters on asv's page.

Results are those of a machine, and of several cards in one host each makes a machine of its own: `host` is the host
with its first card, `host-cuda1` with its second. The file says which card that is, by number and fingerprint.
"""

import contextlib
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import asv.util
from asv.machine import Machine, MachineCollection
from asv.util import UserError

from accel_micro import host
from accel_micro.asv_plugin import patching, state
from accel_micro.asv_plugin.errors import EnvironmentLacks
from accel_micro.asv_plugin.locking import lock_directory
from accel_micro.builds.locks import FileLock
from accel_micro.device_names import index_of
from accel_micro.devices import chosen
from accel_micro.host import cards
from accel_micro.host.cards import Card

_HOST: Final = "host"
"""In the file of a machine that is a host with another card than its first: the host's own name."""


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
                present, read = cards_of_run(), host.machine_facts()
                with _alone():
                    base = _base(_path)
                    derived = machine_name is None
                    machine_name = machine_name or _named(base, present, _path)
                    known = _known(machine_name, _path)
                    _require_same(machine_name, known, present)
                    # The user's own answers stay; facts are read anew, since drivers change.
                    facts = {
                        **cls.get_defaults(),
                        **(_known(base, _path) if derived else {}),
                        **known,
                        **read,
                        "machine": machine_name,
                        **_facts(present),
                    }
                    if derived and machine_name != base:
                        facts[_HOST] = base
                    MachineCollection.save(machine_name, facts, _path=_path)
            return original(cls, interactive, force_interactive, _path, machine_name, **options)

        return load

    patching.replace(
        Machine, "load", make, takes=("interactive", "force_interactive", "_path", "machine_name")
    )
    patching.replace(Machine, "save", _saved, takes=("results_dir",))


def _saved(original: Callable[..., Any]) -> Callable[..., Any]:
    """A run that leaves no result leaves no machine either: asv would ask which of several is meant."""

    def save(self: Any, results_dir: str) -> None:
        path = Path(results_dir, self.machine, "machine.json")
        run, new = state.active(), not path.exists()
        original(self, results_dir)
        if run is not None and new:
            run.at_end.callback(_forget_alone, path, path.stat().st_ino)

    return save


def _forget_alone(path: Path, inode: int) -> None:
    """Remove a machine file with nothing beside it, unless another run has written it anew meanwhile."""
    with contextlib.suppress(OSError):
        if path.stat().st_ino == inode and list(path.parent.iterdir()) == [path]:
            path.unlink()
            path.parent.rmdir()


def is_this(name: str) -> bool:
    """Whether results of a machine of that name are this one's: it is called so, or was in an earlier run."""
    return name == _base(None) or bool(_known(name, None))


def cards_of_run() -> list[Card]:
    """The cards of the devices that are asked for, of those kinds that have cards here.

    Raises:
        EnvironmentLacks: which cards they are cannot be told.
    """
    names = chosen.asked()
    found = []
    for kind in cards.WITH_CARDS:
        if names and kind not in names:
            continue
        index = index_of(names.get(kind, kind))
        try:
            card = cards.find(kind, index)
        except cards.UnknownOrder as reason:
            raise EnvironmentLacks(str(reason)) from None
        # Without a tool that shows cards, a variable that hides some may be a leftover on a machine without any.
        if card is not None and (card.listed or index):
            found.append(card)
    run = state.active()
    if run is not None:
        # AMD's tools write another UUID than torch, and torch's of a slice may be that of the card.
        known = [card for card in found if (card.uuid or "").startswith("GPU-")]
        run.cards = {card.kind: str(card.fingerprint) for card in known}
    return found


def devices_of(machine: str | None, devices: Sequence[str]) -> tuple[str, ...]:
    """The devices by the names under which this process finds the cards that a machine's results are of.

    A name with an index stays what it is, and so does one of a machine that says nothing about its cards.

    Raises:
        EnvironmentLacks: such a card is not here, or hidden.
    """
    known = {} if machine is None else _known(machine, None)
    return tuple(_device_of(str(machine), known.get(f"{name}_card"), name) for name in devices)


def name_for(devices: Sequence[str]) -> str | None:
    """The machine that results of these devices belong to; None where no name has an index, so any may.

    Raises:
        EnvironmentLacks: which card is meant cannot be told, or it is not here.
    """
    found = []
    for name in devices:
        kind, colon, _ = name.partition(":")
        if colon and kind in cards.WITH_CARDS:
            try:
                card = cards.find(kind, index_of(name))
            except cards.UnknownOrder as reason:
                raise EnvironmentLacks(str(reason)) from None
            if card is None:
                raise EnvironmentLacks(f"{name} is not to be seen here")
            found.append(card)
    return _named(_base(None), found, None) if found else None


def _device_of(machine: str, written: str | None, name: str) -> str:
    if written is None or ":" in name or name not in cards.WITH_CARDS:
        return name
    number, fingerprint = _parsed(written)
    index = 0
    while True:
        try:
            card = cards.find(name, index)
        except cards.UnknownOrder as reason:
            raise EnvironmentLacks(str(reason)) from None
        if card is None or (not card.listed and index > (number or 0)):
            raise EnvironmentLacks(
                f"results of machine {machine} are of {name} card {written}, which this process does not see"
            )
        same = card.fingerprint == fingerprint if card.fingerprint and fingerprint else card.number == number
        if same:
            return f"{name}:{index}" if index else name
        index += 1


@contextlib.contextmanager
def _alone() -> Iterator[None]:
    """Runs on two cards may begin together, and each writes the whole file."""
    lock = FileLock(lock_directory() / "machine-file.lock")
    lock.acquire(shared=False)
    try:
        yield
    finally:
        lock.release()


def _base(path: str | None) -> str:
    """The name of this host: the one that the user gave it, where there is one, as asv takes it, else the system's."""
    unique = str(Machine.get_unique_machine_name())
    file = Path(path or MachineCollection.get_machine_file_path())
    try:
        known = asv.util.load_json(str(file), MachineCollection.api_version) if file.is_file() else {}
    except (UserError, ValueError):
        return unique
    hosts = [name for name, facts in known.items() if not (isinstance(facts, dict) and facts.get(_HOST))]
    return str(hosts[0]) if len(hosts) == 1 and unique not in hosts else unique


def _named(name: str, present: Sequence[Card], path: str | None) -> str:
    """A machine's name with its cards: those of one host never share one."""
    for card in present:
        name += card.suffix
    for card in present:
        if _differs(_known(name, path).get(f"{card.kind}_card"), card):
            name += f"-{card.fingerprint}"  # another card has taken the place of the one that was there
    return name


def _require_same(name: str, known: dict[str, Any], present: Sequence[Card]) -> None:
    for card in present:
        before = known.get(f"{card.kind}_card")
        if _differs(before, card):
            raise EnvironmentLacks(
                f"results of machine {name} are of {card.kind} card {before}, and this is card "
                f"{cards.written(card)}; give it a name of its own with --machine, or let accel_micro do so"
            )


def _differs(written: str | None, card: Card) -> bool:
    if written is None:
        return False
    number, fingerprint = _parsed(written)
    if fingerprint and card.fingerprint:
        return fingerprint != card.fingerprint
    return False if card.number is None or number is None else number != card.number


def _parsed(written: str) -> tuple[int | None, str | None]:
    """The number and the fingerprint in a machine file."""
    match = re.fullmatch(r"(\d+|\?)(?: \(([0-9a-f]+)\))?", written)
    if match is None:
        return None, None
    return int(match[1]) if match[1] != "?" else None, match[2]


def _facts(present: Sequence[Card]) -> dict[str, Any]:
    """What the machine file says about the cards; of one that is not the first, its model in place of all models."""
    facts = cards.facts(present)
    for card in present:
        if card.suffix and card.name:
            facts["gpu"] = card.name
    return facts


def _known(name: str, path: str | None) -> dict[str, Any]:
    try:
        found = dict(MachineCollection.load(name, _path=path))
    except UserError:
        return {}
    return (
        found if found.get("machine", name) == name else {}
    )  # asv gives the only one, whatever it is called
