"""Facts about a machine, in whatever groups they come, as labels and texts."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from accel_micro.report import units

_UNITS: Final[dict[str, Callable[[float], str]]] = {
    "_bytes_per_second": lambda value: units.quantity(value, "B/s"),
    "_flops_per_second": lambda value: units.quantity(value, "FLOP/s"),
    "_seconds": lambda value: units.quantity(value, "s"),
    "_bytes": lambda value: units.byte_count(round(value)),
    "_hertz": lambda value: units.quantity(value, "Hz"),
    "_celsius": lambda value: f"{value:g} °C",
    "_watts": lambda value: f"{value:g} W",
}

_ABOUT_FACTS: Final = ("sources", "unread")


@dataclass(frozen=True)
class Fact:
    """One line: a label, a text, and where it was read, empty when that is unknown."""

    label: str
    text: str
    source: str = ""


@dataclass(frozen=True)
class Group:
    """Facts under one heading."""

    name: str
    facts: tuple[Fact, ...]


def groups(facts: Mapping[str, Any]) -> tuple[Group, ...]:
    """Facts by group, those outside any group first; a group inside a group gets a heading of its own."""
    loose: list[Fact] = []
    found: list[Group] = []
    _walk("", (), facts, {}, loose, found)
    return (*([Group("", tuple(loose))] if loose else ()), *found)


def _walk(
    name: str,
    path: tuple[str, ...],
    facts: Mapping[str, Any],
    sources: Mapping[str, Any],
    loose: list[Fact],
    found: list[Group],
) -> None:
    if isinstance(facts.get("sources"), Mapping):
        # Named from here on: {"torch": {"build": {…}, "sources": {"build.version": …}}}
        path, sources = (), facts["sources"]
    for key, value in facts.items():
        if key in _ABOUT_FACTS or value is None or value == {} or value == []:
            continue
        members = list(_members(f"{name} {key}".strip(), value))
        if not members:
            source = sources.get(".".join((*path, str(key))), "")
            loose.append(Fact(label(key), text(key, value), str(source)))
        for heading, inner in members:
            inside: list[Fact] = []
            place = len(found)
            _walk(heading, (*path, str(key)), inner, sources, inside, found)
            if inside:
                found.insert(place, Group(heading, tuple(inside)))


def _members(heading: str, value: Any) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The mapping itself, or the mappings in a list, numbered when there are several."""
    if isinstance(value, Mapping):
        yield heading, value
    elif isinstance(value, (list, tuple)) and all(isinstance(item, Mapping) for item in value):
        if all(_is_short(item) for item in value):
            return
        for number, item in enumerate(value):
            yield (f"{heading} {number}" if len(value) > 1 else heading), item


def _is_short(item: Mapping[str, Any]) -> bool:
    """Such as a process with its number and load: a line each would be too much."""
    return len(item) <= 3 and not any(isinstance(value, (Mapping, list, tuple)) for value in item.values())


def label(key: str) -> str:
    """`base_frequency_hertz` → `base frequency`: units are in the text."""
    for suffix in _UNITS:
        key = key.removesuffix(suffix)
    return key.replace("_", " ")


def text(key: str, value: Any) -> str:
    """A fact's value for people, with the unit that its name ends in."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (int, float)):
        for suffix, form in _UNITS.items():
            if key.endswith(suffix) and (value == 0 or units.is_finite_positive(value)):
                return form(value)
        return f"{value:g}" if isinstance(value, float) else str(value)
    if isinstance(value, (list, tuple)):
        separator = "; " if any(isinstance(item, Mapping) for item in value) else ", "
        return separator.join(text(key, item) for item in value)
    if isinstance(value, Mapping):
        return ", ".join(f"{label(str(name))} {text(str(name), item)}" for name, item in value.items())
    return str(value)


def summary(facts: Mapping[str, Any]) -> tuple[str, ...]:
    """Processor, accelerators and system in a few words, as far as the facts have them."""
    found: list[Any] = [_get(facts, "cpu", "model")]
    devices = _get(facts, "gpu", "devices")
    for device in devices if isinstance(devices, (list, tuple)) else ():
        found.append(_get(device, "name") or _get(device, "model"))
    found.append(_get(facts, "system", "os"))
    return tuple(dict.fromkeys(str(part) for part in found if part))


def _get(facts: Any, *path: str) -> Any:
    for key in path:
        facts = facts.get(key) if isinstance(facts, Mapping) else None
    return facts
