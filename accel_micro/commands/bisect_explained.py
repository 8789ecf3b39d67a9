"""`bisect --from-explain`: an operator that an explanation names, as the question of a bisection."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from accel_micro.commands.bisect import NoQuestion, Request
from accel_micro.explain import file
from accel_micro.explain.setting import Setting, WrongSetting
from accel_micro.results.questions import Script
from accel_micro.shell import joined

_SCRIPT: Final = Path(file.__file__).parent / "capturing" / "one_op.py"
_SHOWN: Final = 5
_FIELDS: Final = ("kind", "phase", "label", "ops", "seconds", "significant")
"""What is asked of each contribution."""
_NIGHTLY: Final = re.compile(r"\.dev(\d{8})")


def with_explained(
    request: Request,
    path: Path,
    number: int,
    timeout_seconds: float,
    say: Callable[[str], None] = lambda text: None,
) -> Request:
    """A request about one operator of the step that was explained, timed in place in each build.

    The builds are those that the two sides ran with, where the request names none.

    Args:
        path: what `explain --json` wrote. number: of the operator, from 1, among those that cost more time in the
            contender (less with `regress` "faster"), the costliest first.
        say: is told what makes an answer doubtful.

    Raises:
        NoQuestion: it is no such file, or has no such operator.
    """
    explained = _read(path)
    ops = _operators(explained, request.regress)
    if not ops:
        how = {"faster": "less", "either": "another"}.get(request.regress, "more")
        only = "" if not _changed(explained, request.regress) else " and that both builds call"
        raise NoQuestion(f"{path} names no operator that takes {how} time in the contender{only}")
    if number > len(ops):
        listed = [f"{n}: {_label(op)}" for n, op in enumerate(ops[:_SHOWN], 1)]
        raise NoQuestion(f"{path} has no operator {number}; there are {len(ops)}: {', '.join(listed)}")
    op, side = ops[number - 1], explained["contender"]
    if not op["significant"]:
        say(f"{path} does not show that {_label(op)} differs, so this may well end as not reproduced")
    try:
        setting = Setting.parse(side["setting"])
    except WrongSetting as error:
        raise NoQuestion(f"{path} has a setting that is none: {error}") from None
    switches = {name: value for name, value in setting.switches.items() if name not in ("build", "python")}
    here = replace(setting, switches=switches)
    arguments = [side["model"], str(here), op["phase"], ",".join(op["ops"])]
    if not side["training"]:
        arguments.append("--inference")
    good, bad = request.good, request.bad
    if good is None and bad is None:
        good, bad = (build_of(str(explained[name]["torch"])) for name in ("baseline", "contender"))
        if good == bad:
            raise NoQuestion(f"both sides of {path} ran torch {good}; name the builds with --good and --bad")
    title = f"{_label(op)} in {side['model']} ({here})"
    script = Script(str(_SCRIPT), tuple(arguments), timeout_seconds, numbers=True, title=title, seconds=True)
    return replace(request, script=script, device=here.device, good=good, bad=bad)


def build_of(version: str) -> str:
    """How a build of that version is named: a nightly by its date, a release by its number.

    >>> build_of("2.14.0.dev20261105+cpu"), build_of("2.13.0+cpu")
    ('20261105', '2.13.0')
    """
    nightly = _NIGHTLY.search(version)
    return nightly[1] if nightly else version.partition("+")[0]


def command(script: Script) -> str:
    """What measures one build by hand, with its Python first."""
    return joined(["python", script.path, *script.arguments])


def _read(path: Path) -> Mapping[str, Any]:
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        sides = [data[name][field] for name in ("baseline", "contender") for field in ("model", "torch")]
        if not isinstance(data["contributions"], list) or not all(isinstance(each, str) for each in sides):
            raise TypeError("not an explanation")
        for each in data["contributions"]:
            _ = [each[field] for field in _FIELDS]
    except OSError as error:
        raise NoQuestion(f"{path} cannot be read: {error.strerror}") from None
    except (ValueError, KeyError, TypeError):
        raise NoQuestion(f"{path} is not what `accel-micro explain --json` writes") from None
    found: Mapping[str, Any] = data
    return found


def _changed(explained: Mapping[str, Any], regress: str) -> Sequence[Mapping[str, Any]]:
    """Groups of operators that changed in the direction asked for."""
    sign = {"slower": -1.0, "faster": 1.0}.get(regress)
    ops = [each for each in explained["contributions"] if each["kind"] == "op" and each["ops"]]
    return [each for each in ops if sign is None or sign * (each["seconds"] or 0.0) > 0]


def _operators(explained: Mapping[str, Any], regress: str) -> Sequence[Mapping[str, Any]]:
    """Of these the ones that both sides call, since a build that calls none gives no time to hold against another's.

    The costliest first; significant ones before all.
    """
    both = [
        each
        for each in _changed(explained, regress)
        if each.get("baseline_seconds") != 0.0 and each.get("contender_seconds") != 0.0
    ]
    return sorted(both, key=lambda each: (not each["significant"], -abs(each["seconds"] or 0.0)))


def _label(op: Mapping[str, Any]) -> str:
    return f"{op['phase']} {op['label']}"
