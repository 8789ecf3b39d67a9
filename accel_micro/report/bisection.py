"""The answer of a bisection: in words, as plain data, and as an issue that is ready to file."""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from accel_micro.bisect import Result
from accel_micro.bisect.ratio import Ratio
from accel_micro.bisect.result import Step
from accel_micro.builds import Build
from accel_micro.builds.commits import commit_url, compare_url
from accel_micro.report.units import byte_count
from accel_micro.report.words import clean, count, wrapped
from accel_micro.results.questions import Question

WIDTH: Final = 100

_WHAT: Final = {
    "throughput": "time per call",
    "latency": "latency",
    "dispatch": "time to enqueue a call",
    "device": "time on the device",
    "memory": "memory held during a call",
    "error": "error of the result",
}
_SLOWER: Final = {"memory": ("more", "less"), "error": ("larger", "smaller")}


@dataclass(frozen=True)
class Answer:
    """What is told of a bisection.

    Attributes:
        name: of its file. runs_before: processes of searches that began too late to find a good build.
        builds: by id, with their commits, as far as the ledger knows them.
        notes: id of a build → why it gave nothing, or failed.
        reproducer: a stand-alone script, or the command that times an operator; None where there is neither.
    """

    name: str
    question: Question
    result: Result[str]
    builds: Mapping[str, Build] = field(default_factory=dict)
    notes: Mapping[str, Sequence[str]] = field(default_factory=dict)
    runs_before: int = 0
    reproducer: str | None = None

    @property
    def runs(self) -> int:
        """Processes in all."""
        return self.runs_before + self.result.runs


def render(answer: Answer, width: int = WIDTH) -> str:
    """The answer for a terminal, with a newline at its end."""
    lines: list[str] = []
    for text in _sentences(answer):
        lines += wrapped(clean(text), width) if not text.startswith("  ") else [clean(text)]
    return "\n".join(lines) + "\n"


def headline(answer: Answer) -> str:
    """The answer in one sentence."""
    question, result = answer.question, answer.result
    if result.kind == "culprit":
        step = result.steps[0]
        return f"{_changed(answer, step.ratio)} with torch {answer.question.version(step.bad)}."
    first, last = _ends(answer)
    if not result.finished:
        return f"Not finished: {count(answer.runs, 'process', 'processes')} so far; --resume goes on."
    if result.kind == "not_reproduced":
        return (
            f"Not reproduced: torch {first} and torch {last} were not shown to differ in "
            f"{compared(question)}{_ratio_text(answer, result.ratio, '; the last to the first is ')}."
        )
    if result.kind == "no_usable_build":
        return "No answer: fewer than two builds of the range work here."
    return (
        f"Undecided: torch {first} and torch {last} differ, "
        f"but no pair was confirmed in {count(answer.runs, 'process', 'processes')}."
    )


def asked(question: Question) -> str:
    """What is compared between which builds, in one line: of a search that begins."""
    ids = question.ids(question.starts[0])
    ends = f"torch {question.version(ids[0])} to {question.version(ids[-1])}"
    return f"{question.title}: {compared(question)}, {count(len(ids), 'build')}, {ends}"


def _sentences(answer: Answer) -> Iterator[str]:
    question, result = answer.question, answer.result
    yield headline(answer)
    yield f"  {question.title}"
    if result.kind == "culprit":
        for step in result.steps:
            yield ""
            yield from _step(answer, step)
        if result.unexplained:
            yield ""
            yield "The ends differ by more than that: there is another change, which was not found."
        yield ""
        yield (
            f"A pair of builds that do not differ is named in at most {_percent(result.error_rate)} of such searches: "
            f"both ran by turns in fresh processes, in an order drawn at random, after the search had chosen them."
        )
    elif result.kind == "not_reproduced" and (other := _other_way(answer)):
        yield ""
        yield f"They differ the other way: --regress {other} finds the build that brought it."
    elif result.kind == "undecided":
        yield ""
        yield f"The change came most likely with {_listed(answer, result.suspects)}."
        more = 2 * max(result.runs, 250)
        yield f"More may decide it: accel-micro bisect --resume {answer.name} --max-runs {more}"
    broken = [build for build in result.broken if build in answer.notes]
    if broken:
        yield ""
        yield "Did not work:"
        for build in broken[:8]:
            yield f"  torch {question.version(build)}: {answer.notes[build][0]}"
    if question.left_out:
        yield ""
        yield f"Not run of this range: {count(len(question.left_out), 'build')}"
        for build, why in list(question.left_out.items())[:8]:
            yield f"  torch {question.version(build)}: {why}"
        if len(question.left_out) > 8:
            yield f"  and {len(question.left_out) - 8} more"
    yield ""
    yield f"{count(answer.runs, 'process', 'processes')}; log: accel-micro bisect log {answer.name}"


def _other_way(answer: Answer) -> str | None:
    """What would have to be asked for where the ends differ the way that was not."""
    ratio, asked = answer.result.ratio, answer.question.regress
    if asked == "slower" and ratio.high < 1:
        return "faster"
    return "slower" if asked == "faster" and ratio.low > 1 else None


def _step(answer: Answer, step: Step[str]) -> Iterator[str]:
    rows = [
        ("last good", answer.question.version(step.good)),
        ("first bad", answer.question.version(step.bad)),
    ]
    if answer.question.regress != "error":
        rows.append(("bad ÷ good", _ratio(step.ratio)))
    between = [b for b in answer.question.between(step.good, step.bad) if b.id != step.bad]
    if between:
        names = ", ".join(build.version for build in between[:6])
        more = f" and {len(between) - 6} more" if len(between) > 6 else ""
        rows.append(("suspects too", f"{names}{more}: between the two, and not measured"))
    good, bad = answer.builds.get(step.good), answer.builds.get(step.bad)
    if good and bad and (url := compare_url(good, bad)):
        rows.append(("commits", url))
    for label, text in rows:
        yield f"  {label:13}{text}"


def plan(question: Question, sizes: Mapping[str, int | None]) -> str:
    """What a search would do, with a newline at its end.

    Args:
        sizes: id of a build → bytes of its wheel, as far as they are known.
    """
    starts = [question.version(start) for start in question.starts]
    ids = question.ids(question.starts[-1])
    known = [size for build in ids if (size := sizes.get(build))]
    lines = [
        f"Would search {count(len(ids), 'build')}, torch {question.version(ids[0])} to {question.version(ids[-1])}",
        f"  for what is {question.regress}: {question.title} ({compared(question)})"
        if question.regress != "error"
        else f"  for what fails: {question.title}",
        f"  wheels: {question.variant}"
        + (f", {byte_count(round(sum(known) / len(known)))} each" if known else ""),
        f"  at most {question.max_runs} processes; a clear change takes about 50, one of twice the noise about 90",
    ]
    if len(starts) > 1:
        lines.append(f"  looking for a good build from torch {', then '.join(starts[:4])} on")
    lines += [f"  left out: torch {question.version(b)}: {why}" for b, why in question.left_out.items()]
    return "\n".join(map(clean, lines)) + "\n"


def to_json(answer: Answer) -> dict[str, Any]:
    """Plain data."""
    result, question = answer.result, answer.question
    return {
        "bisection": answer.name,
        "kind": result.kind,
        "headline": headline(answer),
        "finished": result.finished,
        "steps": [
            {
                "good": _build(answer, step.good),
                "bad": _build(answer, step.bad),
                "ratio": _numbers(step.ratio),
                "suspects": [_build(answer, b.id) for b in question.between(step.good, step.bad)],
                "compare": _compare(answer, step),
            }
            for step in result.steps
        ],
        "suspects": [_build(answer, build) for build in result.suspects],
        "ends": _numbers(result.ends),
        "unexplained": result.unexplained,
        "error_rate": result.error_rate,
        "runs": answer.runs,
        "broken": {question.version(b): list(answer.notes.get(b, ())) for b in result.broken},
        "question": question.to_json(),
        "reproducer": answer.reproducer,
    }


def to_markdown(answer: Answer) -> str:
    """The body of an issue. Text of others stands in code, where it is no markup."""
    question, result = answer.question, answer.result
    lines = [f"**{headline(answer)}**", "", f"`{_code(question.title)}`", ""]
    for step in result.steps:
        good, bad = answer.builds.get(step.good), answer.builds.get(step.bad)
        lines += ["| | build | commit |", "|---|---|---|"]
        for label, build_id, build in (("last good", step.good, good), ("first bad", step.bad, bad)):
            url = commit_url(build) if build else None
            commit = f"[`{url.rpartition('/')[2][:12]}`]({url})" if url else "unknown"
            lines.append(f"| {label} | `{_code(question.version(build_id))}` | {commit} |")
        lines += ["", f"Commits between them: {_compare(answer, step) or 'unknown'}", ""]
        if question.regress != "error":
            which = " (95 % interval)" if _has_interval(step.ratio) else ""
            lines += [f"Bad ÷ good, {compared(question)}: {_ratio(step.ratio)}{which}.", ""]
        between = [b for b in question.between(step.good, step.bad) if b.id != step.bad]
        if between:
            names = ", ".join(f"`{_code(b.version)}`" for b in between)
            lines += [f"Not measured, so suspects too: {names}.", ""]
    if result.steps:
        lines += [
            f"The two builds were run by turns in fresh processes, {count(answer.runs, 'process', 'processes')} in all "
            f"with the search for them. A pair that does not differ is named in at most "
            f"{_percent(result.error_rate)} of such searches.",
            "",
        ]
    lines += ["### Environment", "", "| | |", "|---|---|"]
    facts = {"wheels": question.variant, **question.machine}
    lines += [f"| {_code(str(key))} | `{_code(str(value))}` |" for key, value in facts.items() if value]
    if answer.reproducer:
        longest = max((len(run) for run in re.findall("`+", answer.reproducer)), default=0)
        fence = "`" * max(4, longest + 1)
        language = "sh" if question.script is not None and question.script.seconds else "python"
        lines += ["", "### Reproducer", "", f"{fence}{language}", answer.reproducer.rstrip(), fence]
    lines += ["", f"Found by `{_code(question.command)}`.", ""]
    return "\n".join(lines)


def _changed(answer: Answer, ratio: Ratio) -> str:
    question = answer.question
    if question.regress == "error":
        return "It stopped working"
    more, less = _SLOWER.get(question.metric, ("slower", "faster"))
    word = more if ratio.value >= 1 else less
    factor = ratio.value if ratio.value >= 1 else 1 / ratio.value
    size = f"{factor:.2f} times" if factor >= 1.995 else f"{100 * (factor - 1):.1f} %"
    return f"{compared(question).capitalize()}: {size} {word}"


def compared(question: Question) -> str:
    """What is compared, in a few words."""
    if question.script is not None:
        if question.script.seconds:
            return "time in a step"
        return "what the script prints" if question.script.numbers else "whether it works"
    return "whether it works" if question.regress == "error" else _WHAT[question.metric]


def _ends(answer: Answer) -> tuple[str, str]:
    names = answer.result.log[0]["builds"]
    return answer.question.version(names[0]), answer.question.version(names[-1])


def _ratio(ratio: Ratio) -> str:
    if not math.isfinite(ratio.value):
        return "unknown"
    if not _has_interval(ratio):
        return f"{ratio.value:.3f}, of too few blocks for an interval"
    return f"{ratio.value:.3f} ({ratio.low:.3f} to {ratio.high:.3f})"


def _has_interval(ratio: Ratio) -> bool:
    return ratio.low > 0 and math.isfinite(ratio.high)


def _ratio_text(answer: Answer, ratio: Ratio, before: str) -> str:
    known = math.isfinite(ratio.value) and answer.question.regress != "error"
    return f"{before}{_ratio(ratio)}" if known else ""


def _numbers(ratio: Ratio) -> dict[str, float | None]:
    values = {"value": ratio.value, "low": ratio.low, "high": ratio.high}
    return {name: value if math.isfinite(value) else None for name, value in values.items()}


def _listed(answer: Answer, builds: Sequence[str]) -> str:
    if not builds:
        return "none"
    question = answer.question
    ids = [build.id for build in question.builds]
    inside = question.builds[ids.index(builds[0]) : ids.index(builds[-1]) + 1]
    if len(inside) == 1:
        return f"torch {inside[0].version}"
    return f"one of {len(inside)} builds, torch {inside[0].version} to {inside[-1].version}"


def _build(answer: Answer, build_id: str) -> dict[str, Any]:
    build = answer.builds.get(build_id)
    return {
        "id": build_id,
        "version": answer.question.version(build_id),
        "git_version": build.git_version if build else None,
        "main_commit": build.main_commit if build else None,
    }


def _compare(answer: Answer, step: Step[str]) -> str | None:
    good, bad = answer.builds.get(step.good), answer.builds.get(step.bad)
    return compare_url(good, bad) if good and bad else None


def _percent(share: float) -> str:
    return f"{100 * share:g} %"


def _code(text: str) -> str:
    return clean(text).replace("`", "'").replace("|", "/")
