"""One case of the suite, by what a person writes: a name copied from a page or a table, else a regular expression."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Final

from accel_micro.measure import CLOCKS
from accel_micro.measure.records import Case
from accel_micro.profiles import Profile
from accel_micro.shapes import is_cold
from accel_micro.suite import DEVICES, OpBenchmark

MOST_LISTED: Final = 8
"""Names of candidates that an error lists; it counts the others."""


class NotOneCase(LookupError):
    """What was written names no case, several, or one that does not exist; the message says which."""


@dataclass(frozen=True)
class Chosen:
    """One case of the suite.

    Attributes:
        benchmark: the class of its op. clock: that of the name that was found, throughput where it names none.
    """

    benchmark: type[OpBenchmark]
    case: Case
    clock: str = "throughput"


def choose(
    ops: Sequence[type[OpBenchmark]],
    text: str,
    devices: Sequence[str],
    *,
    dtypes: Sequence[str] = (),
    profile: Profile | None = None,
) -> Chosen:
    """The one case that a text names.

    Names are asv's, such as `matmul.mm.time_backward_device('cuda', 'float32', 'm=64 k=64 n=64')`, and those of tables,
    `matmul.mm backward float32 m=64 k=64 n=64 on cuda`. A whole name is taken literally, whatever the device. All else
    is a regular expression, which is searched in the names of every shape, quick ones first; in those of cold cases
    only where it says `cold`, or no expression that meant one case would do so any more.

    Args:
        devices: kinds of device among which a regular expression chooses.
        dtypes: dtypes among which it chooses; none stands for all.
        profile: it chooses among the cases of that profile alone.

    Raises:
        NotOneCase: not exactly one matches, the text is no regular expression, or the case does not exist.
    """
    literal = text.strip().replace('"', "'")
    for benchmark, case in _cases(ops, DEVICES):
        for name, clock in _names(case):
            if name == literal:
                return _existing(Chosen(benchmark, case, clock))
    try:
        pattern = re.compile(text)
    except re.error as error:
        raise NotOneCase(f"{text!r} is no regular expression: {error}") from None
    found = list(_found(ops, pattern, devices, dtypes, profile))
    return _only(text, found, devices, like(text, [benchmark.op.name for benchmark in ops]))


def _cases(
    ops: Sequence[type[OpBenchmark]], devices: Sequence[str]
) -> Iterator[tuple[type[OpBenchmark], Case]]:
    for benchmark in ops:
        op = benchmark.op
        for device in devices:
            for direction in ("forward", "backward") if op.backward else ("forward",):
                for dtype in op.dtypes:
                    for shape in op.all_shapes:
                        yield benchmark, benchmark.case(direction, device, dtype, shape)


def _names(case: Case) -> Iterator[tuple[str, str]]:
    """Names of a case, each with the clock that it means."""
    yield str(case), "throughput"
    for clock in CLOCKS:
        yield case.named(clock), clock


def _found(
    ops: Sequence[type[OpBenchmark]],
    pattern: "re.Pattern[str]",
    devices: Sequence[str],
    dtypes: Sequence[str],
    profile: Profile | None,
) -> Iterator[Chosen]:
    for benchmark, case in _cases(ops, devices):
        if dtypes and case.dtype not in dtypes:
            continue
        if is_cold(case.shape) and "cold" not in pattern.pattern:
            continue
        clock = next((clock for name, clock in _names(case) if pattern.search(name)), None)
        if clock is not None and _is_run(benchmark, case, profile):
            yield Chosen(benchmark, case, clock)


def _is_run(benchmark: type[OpBenchmark], case: Case, profile: Profile | None) -> bool:
    op = benchmark.op
    return profile is None or (case.dtype, case.shape) in profile.runs(case.device, op.lists, op.dtypes)


def like(text: str, names: Sequence[str]) -> list[str]:
    """Ops whose name, or what follows its family, is much like the first word of a text; families too."""
    word = text.split()[0] if text.split() else ""
    known = {part: name for name in names for part in (name, name.rpartition(".")[2])}
    known.update({family: family for family in (name.partition(".")[0] for name in names)})
    return list(dict.fromkeys(known[part] for part in get_close_matches(word, known, n=3, cutoff=0.7)))


def _only(text: str, found: Sequence[Chosen], devices: Sequence[str], like: Sequence[str]) -> Chosen:
    existing = [one for one in found if _why_not(one) is None]
    if len(existing) == 1:
        return existing[0]
    if not existing:
        nearest = f"; the nearest names are {', '.join(like)}" if like else ""
        listed = f"{nearest}; `accel-micro ops --cases` lists those there are"
        reason = f": {_why_not(found[0])}" if found else listed
        raise NotOneCase(f"no case on {' or '.join(devices)} matches {text!r}{reason}")
    listed = "\n".join(f"  {one.case.named(one.clock)}" for one in existing[:MOST_LISTED])
    more = len(existing) - MOST_LISTED
    raise NotOneCase(
        f"{len(existing)} cases match {text!r}, and one is needed; write the whole name of one:\n{listed}"
        + (f"\n  and {more} more" if more > 0 else "")
    )


def _existing(chosen: Chosen) -> Chosen:
    if (reason := _why_not(chosen)) is not None:
        raise NotOneCase(f"{chosen.case} does not exist: {reason}")
    return chosen


def _why_not(chosen: Chosen) -> str | None:
    case = chosen.case
    return chosen.benchmark.op.why_unsupported(case.device, case.dtype, case.shape)
