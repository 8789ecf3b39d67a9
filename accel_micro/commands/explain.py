"""What `capture` and `explain` do: models measured under settings, held against each other, and causes tried."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from accel_micro.explain.setting import Setting, shown

if TYPE_CHECKING:
    from accel_micro.explain.batches import Fit, Switch, Tried
    from accel_micro.explain.capture import Capture, Row
    from accel_micro.explain.capturing.taking import CannotCapture, Request
    from accel_micro.explain.causes import Ablation, Cause
    from accel_micro.explain.explanation import Explanation

DEFAULT_BATCH: Final = 4
_ABLATION_PROCESSES: Final = 4
_MOST_ABLATIONS: Final = 3

Told = Callable[[str], None]
"""Told in a sentence what is done now."""


@dataclass(frozen=True)
class Explained:
    """All that `explain` found."""

    explanation: "Explanation"
    causes: "list[Cause]"
    ablations: "list[Ablation]"
    fit: "Fit | None" = None


def capture(request: "Request", settings: Sequence[Setting], tell: Told) -> "list[Capture]":
    """A capture of each setting, by turns, while their devices are locked.

    Raises:
        CannotCapture: a process failed. DeviceBusy: another run holds a device.
    """
    from accel_micro.asv_plugin.locking import DeviceLocks
    from accel_micro.explain.capturing.taking import CannotCapture, take

    for setting in settings:  # rather than when its turn comes: the other side has been measured by then
        # XLA is asked in its process alone: what opens a TPU here would hold it.
        if not {"build", "python"} & set(setting.switches) and not setting.device.startswith("xla"):
            _check_device(setting.device, CannotCapture)
    locks = DeviceLocks()
    locks.acquire({setting.device for setting in settings})
    try:
        return take(
            request,
            settings,
            lambda setting, number, total: tell(f"process {number} of {total}: {shown(str(setting))}"),
        )
    finally:
        locks.release()


def _check_device(name: str, cannot: "type[CannotCapture]") -> None:
    """Raises CannotCapture where this environment's torch has no such device."""
    from accel_micro import devices

    try:
        reason = devices.get(name).unavailable()
    except devices.UnknownDevice as error:
        raise cannot(str(error), wrong_use=True) from None
    if reason is not None:
        raise cannot(reason)


def explain_files(first: "Capture", second: "Capture") -> Explained:
    """What two captures tell; nothing is measured."""
    from accel_micro.explain.attribution import explain
    from accel_micro.explain.causes import causes

    found = explain(first, second)
    return Explained(found, causes(found), [])


def explain_here(
    request: "Request", sides: Sequence[Setting], confirm: bool, tell: Told
) -> tuple[Explained, "list[Capture]"]:
    """Measure two settings by turns, explain them, and try the causes that can be tried here.

    Raises:
        CannotCapture, DeviceBusy: see `capture`.
    """
    from accel_micro.explain.attribution import explain
    from accel_micro.explain.causes import causes

    captures = capture(request, sides, tell)
    found = explain(*captures, interleaved=True)
    suspected = causes(found)
    confirm = confirm and not _interrupted(request, captures)
    ablations = try_causes(request, sides, captures, found, suspected, tell) if confirm else []
    return Explained(found, suspected, ablations), captures


def _interrupted(request: "Request", captures: "Sequence[Capture]") -> bool:
    """Some processes were not awaited: nothing further is measured."""
    return any(len(capture.readings) < request.processes for capture in captures)


def try_causes(
    request: "Request",
    sides: Sequence[Setting],
    captures: "Sequence[Capture]",
    found: "Explanation",
    suspected: "Sequence[Cause]",
    tell: Told,
) -> "list[Ablation]":
    """The ablations of causes that have a setting: whole steps alone, each side by turns with its changed self."""
    from accel_micro.explain.confirming import confirm

    ablations: list[Ablation] = []
    if not found.differs:
        return ablations
    for cause in [cause for cause in suspected if cause.setting is not None][:_MOST_ABLATIONS]:
        assert cause.setting is not None
        side = 0 if cause.side == "baseline" else 1
        changed = (
            cause.setting if cause.setting.batch else cause.setting.changed(batch=str(captures[side].batch))
        )
        tell(f"trying {cause.name}: {changed}")
        try:
            pair = _changed(request, sides[side], changed, tell)
        except KeyboardInterrupt:
            tell("interrupted; what was measured before is explained")
            break
        if pair is not None:
            ablations.append(confirm(cause, *pair, found.difference))
    return ablations


def explain_batches(
    request: "Request", settings: Sequence[Setting], confirm: bool, tell: Told
) -> tuple[Explained, "list[Capture]"]:
    """Measure several batch sizes by turns: the line through them, where it breaks, and the two ends explained.

    Raises:
        CannotCapture, DeviceBusy: see `capture`. ValueError: fewer than four sizes.
    """
    from accel_micro.explain.attribution import explain
    from accel_micro.explain.batches import fit
    from accel_micro.explain.causes import causes

    captures = capture(request, settings, tell)
    line = fit(captures)
    rows = {capture.batch: capture.rows for capture in captures}
    interrupted = _interrupted(request, captures)
    switches = []
    for each in line.switches:
        known = each
        try:
            if confirm and not interrupted:
                known = replace(known, tried=_try_switch(request, line, each, settings[0], tell))
            if not interrupted:
                found_at = narrow(request, settings[0], each, rows[each.below], tell)
                known = replace(known, below=found_at.below, above=found_at.above)
        except KeyboardInterrupt:
            tell("interrupted; what was measured before is explained")
            interrupted = True
        switches.append(known)
    ends = [captures[0], captures[-1]]
    found = explain(*ends, interleaved=True)
    suspected = causes(found)
    sides = [settings[0], settings[-1]]
    confirm = confirm and not interrupted
    ablations = try_causes(request, sides, ends, found, suspected, tell) if confirm else []
    return Explained(found, suspected, ablations, replace(line, switches=tuple(switches))), captures


def _try_switch(
    request: "Request", line: "Fit", switch: "Switch", setting: Setting, tell: Told
) -> "Tried | None":
    """The ablation of a switch, where the line breaks and there is one."""
    from accel_micro.explain.causes.kernels import library
    from accel_micro.explain.confirming import confirm_switch

    flag, value = library(switch.after)
    if line.fits or not flag or setting.switches.get(flag) == value:
        return None
    as_it_is = setting.changed(batch=str(switch.above))
    changed = as_it_is.changed(**{flag: value})
    tell(f"trying the switch at batch {switch.above}: {changed}")
    pair = _changed(request, as_it_is, changed, tell)
    return None if pair is None else confirm_switch(line, switch, *pair)


def _changed(
    request: "Request", setting: Setting, changed: Setting, tell: Told
) -> "tuple[Capture, Capture] | None":
    """A side and its changed self, whole steps alone, by turns, in processes enough for an interval.

    None where the change cannot be made here: what it was to show stays a suspicion.

    Raises:
        KeyboardInterrupt: before all processes had ended.
    """
    from accel_micro.explain.capturing.taking import CannotCapture

    processes = max(_ABLATION_PROCESSES, min(request.processes, 8))
    try:
        asked = replace(request, ops=False, processes=processes)
        before, after = capture(asked, [setting, changed], tell)
        if _interrupted(asked, [before, after]):
            raise KeyboardInterrupt
    except CannotCapture as problem:
        tell(f"{changed} cannot be measured: {problem}")
        return None
    return before, after


def narrow(
    request: "Request", setting: Setting, switch: "Switch", below_rows: "Sequence[Row]", tell: Told
) -> "Switch":
    """The neighbouring batch sizes between which convolutions change, by halving: a step of each size, untimed.

    Args:
        below_rows: of the step at `switch.below`. Others of its convolutions may run as `switch.after` at any size.
    """
    from accel_micro.explain.capturing.taking import rows_of

    places = {(row.phase, row.module) for row in below_rows if row.backend == switch.before}
    below, above = switch.below, switch.above
    while above - below > 1:
        middle = (below + above) // 2
        tell(f"which convolution at batch {middle}?")
        rows = rows_of(request, setting.changed(batch=str(middle)))
        changed = [row for row in rows if row.backend == switch.after and (row.phase, row.module) in places]
        if sum(row.count for row in changed) >= switch.calls:
            above = middle
        else:
            below = middle
    return replace(switch, below=below, above=above)


def save(captures: "Sequence[Capture]", folder: Path) -> list[Path]:
    """Write captures into a folder, named by their settings. Raises OSError."""
    import re

    from accel_micro.explain import file

    folder.mkdir(parents=True, exist_ok=True)
    paths: list[Path] = []
    for capture in captures:
        name = re.sub(r"[^\w.=-]+", "_", f"{capture.model} {capture.setting}")[:150]
        path = folder / f"{name}.json"
        if path in paths:  # a setting against itself, or long paths that begin alike
            path = folder / f"{name}-{len(paths) + 1}.json"
        paths.append(path)
        file.write(capture, paths[-1])
    return paths
