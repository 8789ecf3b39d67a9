"""What people keep beside a suite about what it does not time: which operators an entry runs, and why not."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from accel_micro.catalogue import toml


@dataclass(frozen=True)
class Reasons:
    """The contents of `reasons.toml`.

    Attributes:
        untraced: families that are not run to see which operators they run.
        sentences: reason → its sentence. The reasons `view` and `in_place` are found by the operator's signature.
        files: file of the operator benchmark → the reason for all of it.
        operators: operator of ATen → the reason.
        entries: entry of the operator benchmark, `file.name` → the operators (`aten.…`) that it runs, or the ops of
            the suite that time it.
    """

    untraced: tuple[str, ...]
    sentences: Mapping[str, str]
    files: Mapping[str, str]
    operators: Mapping[str, str]
    entries: Mapping[str, tuple[str, ...]]


def read(path: Path) -> Reasons:
    """The reasons in a file.

    Raises:
        OSError: it cannot be read. ValueError: it is not of this form, or names a reason that has no sentence.
    """
    data = toml.read(path)
    try:
        reasons = Reasons(
            untraced=tuple(data["untraced"]),
            sentences=dict(data["reasons"]),
            files=dict(data["files"]),
            operators=dict(data["operators"]),
            entries={key: tuple(value) for key, value in data["entries"].items()},
        )
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{path} is no list of reasons: {error!r}") from None
    for key, reason in {**reasons.files, **reasons.operators}.items():
        if reason not in reasons.sentences:
            raise ValueError(f"{path}: {key} has the reason {reason!r}, which has no sentence")
    return reasons
