"""Which physical card a device's index means, told without torch: `cuda:1` to the driver's number and UUID.

Two runs may name one card by different indices (`CUDA_VISIBLE_DEVICES=1` makes the second card `cuda:0`), so locks,
names of machines and remembered speeds go by the card itself. UUIDs stay on this machine; what is shared with results
is their hash.
"""

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from accel_micro.host import nvidia, read

ORDER_VARIABLE: Final = "CUDA_DEVICE_ORDER"
BUS_ORDER: Final = "PCI_BUS_ID"
"""The order in which `nvidia-smi` counts. CUDA's own default counts fast cards first."""

WITH_CARDS: Final = ("cuda", "xpu")
"""Kinds of device of which a machine may have several."""


@dataclass(frozen=True)
class Listed:
    """A card as the driver's own tool lists it; `number` is its place there."""

    number: int
    uuid: str | None = None
    name: str | None = None


@dataclass(frozen=True)
class Card:
    """The card that an index means.

    Attributes:
        kind, index: as torch calls it.
        number: as the driver's own tool counts; None: it was named by a UUID that no tool here knows.
        uuid: its UUID, of a slice (MIG) its own; None: unknown.
        name: its model; None: unknown.
        whole: UUID of the card that it is a slice of; None: it is none.
        listed: a tool of the driver's shows it, so it is really there.
    """

    kind: str
    index: int
    number: int | None
    uuid: str | None = None
    name: str | None = None
    whole: str | None = None
    listed: bool = False

    @property
    def fingerprint(self) -> str | None:
        """Eight hex digits that tell cards apart and do not tell the UUID."""
        return None if self.uuid is None else fingerprint(self.uuid)

    @property
    def suffix(self) -> str:
        """What the name of a machine gets for results on this card; empty for the first card."""
        if self.number is not None:
            return f"-{self.kind}{self.number}" if self.number else ""
        return f"-{self.kind}-{self.fingerprint}"

    @property
    def lock(self) -> str:
        """Name of the lock of the physical card: slices of one card share its power, its caches and this."""
        uuid = self.whole or self.uuid
        return f"{self.kind}-{self.number if uuid is None else fingerprint(uuid)}"


class UnknownOrder(ValueError):
    """The environment numbers different cards in an order that cannot be told; the message says what to set."""


def fingerprint(uuid: str) -> str:
    """Of a UUID as any library writes it: `GPU-5f…`, or without its prefix."""
    plain = uuid.lower()
    for prefix in ("mig-", "gpu-"):
        plain = plain.removeprefix(prefix)
    return hashlib.sha256(plain.encode()).hexdigest()[:8]


def find(
    kind: str,
    index: int,
    environment: Mapping[str, str] | None = None,
    listed: Sequence[Listed] | None = None,
) -> Card | None:
    """The card that torch calls by this kind and index; None where it shows none of that index.

    Where no tool lists cards the variables that hide cards are believed, and without any the index is the number.

    Args:
        environment: the variables that hold for the process that uses torch, else this one's.
        listed: what the tools say, else they are asked.

    Raises:
        UnknownOrder: see there.
    """
    environment = os.environ if environment is None else environment
    known = listing(kind) if listed is None else listed
    entries = _visible(kind, environment, known)
    if entries is None:
        entries = [str(place) for place in range(len(known) or index + 1)]
    if index >= len(entries):
        return None
    entry = entries[index]
    if not entry.isdecimal():
        return _by_uuid(kind, index, entry, known)
    if kind == "cuda":
        _require_order(environment, known)
    if not known:
        return Card(kind, index, int(entry))
    found = known[int(entry)]
    return Card(kind, index, found.number, found.uuid, found.name, listed=True)


def listing(kind: str) -> list[Listed]:
    """The cards of a kind, in the order of the driver's own tool; empty where there is no such tool or card."""
    if kind != "cuda":
        return []
    found = [Listed(number, uuid, name) for number, uuid, name in nvidia.uuids()]
    return found or parse_amd_list(read.output(["amd-smi", "list", "--json"]) or "")


def parse_amd_list(text: str) -> list[Listed]:
    """`amd-smi list --json` → cards."""
    try:
        rows = json.loads(text)
    except (ValueError, RecursionError):
        return []
    found = []
    for row in rows if isinstance(rows, list) else []:
        number = read.to_integer(row.get("gpu")) if isinstance(row, Mapping) else None
        if number is not None:
            uuid = row.get("uuid")
            found.append(Listed(number, uuid if isinstance(uuid, str) and uuid else None))
    return found


def _visible(kind: str, environment: Mapping[str, str], known: Sequence[Listed]) -> list[str] | None:
    """The entries that are left: places in `known`, or UUIDs; None where nothing hides any."""
    if kind == "xpu":
        return _entries(environment.get("ZE_AFFINITY_MASK"))
    if kind != "cuda":
        return None
    # ROCm hides cards twice: for the runtime, and by place among what is left then.
    first = _entries(environment.get("ROCR_VISIBLE_DEVICES"))
    second = _entries(environment.get("HIP_VISIBLE_DEVICES"))
    second = _entries(environment.get("CUDA_VISIBLE_DEVICES")) if second is None else second
    if second is None:
        return None if first is None else _valid(first, known)
    among = second if first is None else [_at(first, entry) for entry in second]
    return _valid(among, known)


def _entries(text: str | None) -> list[str] | None:
    return None if text is None else [entry.strip() for entry in text.split(",") if entry.strip()]


def _at(entries: Sequence[str], place: str) -> str:
    within = place.isdecimal() and int(place) < len(entries)
    return entries[int(place)] if within else ("" if place.isdecimal() else place)


def _valid(entries: Sequence[str], known: Sequence[Listed]) -> list[str]:
    """Up to the first that is none, as CUDA reads them."""
    left: list[str] = []
    for entry in entries:
        beyond = entry.isdecimal() and known and int(entry) >= len(known)
        if not entry or entry.startswith("-") or beyond:
            break
        left.append(entry)
    return left


def _by_uuid(kind: str, index: int, entry: str, known: Sequence[Listed]) -> Card:
    """A UUID may be cut short, as long as it is that of one card."""
    if entry.upper().startswith("MIG-"):
        return Card(kind, index, None, entry, whole=nvidia.card_of_slice(entry), listed=bool(known))
    matching = [card for card in known if card.uuid and card.uuid.lower().startswith(entry.lower())]
    if len(matching) == 1:
        return Card(kind, index, matching[0].number, matching[0].uuid, matching[0].name, listed=True)
    return Card(kind, index, None, entry)


def _require_order(environment: Mapping[str, str], known: Sequence[Listed]) -> None:
    order = environment.get(ORDER_VARIABLE, BUS_ORDER)
    if order != BUS_ORDER and len({card.name for card in known}) > 1:
        raise UnknownOrder(
            f"{ORDER_VARIABLE}={order} numbers the different GPUs of this machine in an order of its own; "
            f"unset it, or set {BUS_ORDER}, as nvidia-smi counts"
        )


def facts(cards: Sequence[Card]) -> dict[str, Any]:
    """What the machine file says about the cards of a run: `cuda_card` is `1 (3f2a91bc)`."""
    return {f"{card.kind}_card": written(card) for card in cards}


def written(card: Card) -> str:
    """A card for people, by number and fingerprint."""
    number = "?" if card.number is None else str(card.number)
    return f"{number} ({card.fingerprint})" if card.uuid else number
