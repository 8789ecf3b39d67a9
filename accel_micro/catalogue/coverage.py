"""What others time or run, and where this suite times it, or why not."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from accel_micro.catalogue.aten import traced
from accel_micro.catalogue.operator_benchmark import Benchmarked
from accel_micro.catalogue.reasons import Reasons
from accel_micro.suite import OpBenchmark

VIEW: Final = "view"
IN_PLACE: Final = "in_place"
"""Reasons that follow from an operator's signature or name."""


@dataclass(frozen=True, order=True)
class Place:
    """Where an operator is timed.

    Attributes:
        unnamed: the op has another name than the operator.
        others: how many other operators the op runs, so the fewer the nearer is its time to the operator's own.
        op: name of the op here. words: its arguments that are no numbers, where not all run the operator.
        directions: `forward`, `backward` or both.
    """

    unnamed: bool
    others: int
    op: str
    words: str
    directions: tuple[str, ...]


@dataclass(frozen=True)
class Row:
    """An entry of the operator benchmark, or an operator that the reference models run.

    Attributes:
        source: file of the operator benchmark, or the models that run it.
        operators: of ATen, that it runs. Empty where only an op here says what is the same.
        places: where it is timed, nearest first; of several operators the nearest of each.
        reasons: names of reasons for what is not timed.
        missing: operators, and ops that the list promises, that have neither.
    """

    name: str
    source: tuple[str, ...]
    operators: tuple[str, ...]
    places: tuple[Place, ...]
    reasons: tuple[str, ...]
    missing: tuple[str, ...]

    @property
    def is_missing(self) -> bool:
        """Neither is it timed nor does anything say why not."""
        return bool(self.missing)


@dataclass(frozen=True)
class Coverage:
    """All of it.

    Attributes:
        benchmark: entries of torch's operator benchmark. models: operators of the reference models.
        sentences: reason → sentence, those only that some row has.
        stale: what the list of reasons says and is not so, a sentence each.
    """

    benchmark: tuple[Row, ...]
    models: tuple[Row, ...]
    sentences: Mapping[str, str]
    stale: tuple[str, ...]

    @property
    def missing(self) -> tuple[Row, ...]:
        """Rows without a place and a reason."""
        return tuple(row for row in (*self.benchmark, *self.models) if row.is_missing)


class Suite:
    """Which operators the ops of a suite run."""

    def __init__(self, runs: Mapping[str, Mapping[str, Iterable[tuple[str, str]]]]) -> None:
        """From op → words of a variant → directions and operators; see `trace`."""
        self.ops = tuple(runs)
        self._runs = {op: {words: tuple(pairs) for words, pairs in each.items()} for op, each in runs.items()}

    @cached_property
    def places(self) -> Mapping[str, tuple[Place, ...]]:
        """Operator → where it is timed, nearest first."""
        found: dict[str, list[Place]] = {}
        for op, variants in self._runs.items():
            running: dict[str, dict[str, set[str]]] = {}
            for words, pairs in variants.items():
                for direction, operator in pairs:
                    running.setdefault(operator, {}).setdefault(words, set()).add(direction)
            for operator, where in running.items():
                found.setdefault(operator, []).extend(self._of(op, operator, where))
        return {operator: tuple(sorted(places)) for operator, places in found.items()}

    def _of(self, op: str, operator: str, where: Mapping[str, set[str]]) -> Iterable[Place]:
        variants = self._runs[op]
        fewest = min(len({name for _, name in variants[words]}) for words in where)
        directions = tuple(sorted(set().union(*where.values()), reverse=True))
        words = "" if len(where) == len(variants) else ", ".join(where)
        name = operator.partition(".")[2]
        named = name in (op.partition(".")[2], words.removeprefix("name="))
        return [Place(not named, fewest - 1, op, words, directions)]

    def place(self, op: str) -> Place:
        """That of an op as a whole."""
        pairs = [pair for each in self._runs[op].values() for pair in each]
        return Place(False, 0, op, "", tuple(dict.fromkeys(direction for direction, _ in pairs)))


def trace(ops: Sequence[type[OpBenchmark]], untraced: Sequence[str] = ()) -> Suite:
    """Run each variant of each op once on the CPU, but for those of some families."""
    runs = {}
    for cls in ops:
        op = cls.op
        skipped = op.name.partition(".")[0] in untraced
        runs[op.name] = {
            _words(op.arguments(shape)): () if skipped else traced(op, shape) for shape in op.variants
        }
    return Suite(runs)


def _words(arguments: Mapping[str, object]) -> str:
    return " ".join(f"{key}={value}" for key, value in arguments.items() if isinstance(value, (str, bool)))


def cover(
    benchmark: Iterable[Benchmarked],
    used: Mapping[str, Iterable[str]],
    suite: Suite,
    reasons: Reasons,
    is_view: Callable[[str], bool],
) -> Coverage:
    """Look up each entry and each operator.

    Args:
        used: model → operators that it runs.
        is_view: of an operator, whether its result is a view.
    """
    entries = list(benchmark)
    asked = _Answers(suite, reasons, is_view)
    rows = [asked.entry(entry) for entry in entries]
    by_operator: dict[str, list[str]] = {}
    for model, operators in used.items():
        for operator in operators:
            by_operator.setdefault(operator, []).append(model)
    of_models = [
        asked.row(operator, tuple(models), (operator,), ())
        for operator, models in sorted(by_operator.items())
    ]
    given = {name for row in (*rows, *of_models) for name in row.reasons}
    return Coverage(
        benchmark=tuple(rows),
        models=tuple(of_models),
        sentences={name: text for name, text in reasons.sentences.items() if name in given},
        stale=tuple(_stale(entries, [*rows, *of_models], suite, reasons, given)),
    )


class _Answers:
    """Where operators are timed, or why not."""

    def __init__(self, suite: Suite, reasons: Reasons, is_view: Callable[[str], bool]) -> None:
        self.suite, self.reasons, self.is_view = suite, reasons, is_view

    def entry(self, entry: Benchmarked) -> Row:
        given = self.reasons.entries.get(entry.key)
        if given is None and entry.file in self.reasons.files:
            return Row(entry.name, (entry.file,), (), (), (self.reasons.files[entry.file],), ())
        if given is None:
            given = (f"aten.{entry.call.removeprefix('torch.') or entry.name}",)
        operators = tuple(name for name in given if name.startswith("aten."))
        return self.row(entry.name, (entry.file,), operators, tuple(n for n in given if n not in operators))

    def row(
        self, name: str, source: tuple[str, ...], operators: tuple[str, ...], ops: tuple[str, ...]
    ) -> Row:
        places: list[Place] = [self.suite.place(op) for op in ops if op in self.suite.ops]
        missing = [op for op in ops if op not in self.suite.ops]
        reasons: list[str] = []
        for operator in operators:
            reason = self.reason(operator)
            if reason is not None:
                reasons.append(reason)
            elif operator in self.suite.places:
                nearest = self.suite.places[operator]
                places += nearest if len(operators) == 1 else nearest[:1]
            else:
                missing.append(operator)
        return Row(name, source, operators, tuple(places), tuple(dict.fromkeys(reasons)), tuple(missing))

    def reason(self, operator: str) -> str | None:
        """Why an operator is not timed, if it is not and that is known."""
        if self.is_view(operator):
            return VIEW
        if operator in self.suite.places:
            return None
        if operator in self.reasons.operators:
            return self.reasons.operators[operator]
        base = operator.removesuffix("_")
        return IN_PLACE if base != operator and base in self.suite.places else None


def _stale(
    entries: Sequence[Benchmarked], rows: Sequence[Row], suite: Suite, reasons: Reasons, given: set[str]
) -> Iterable[str]:
    asked = {operator for row in rows for operator in row.operators}
    for operator, reason in reasons.operators.items():
        if operator in suite.places:
            yield f"{operator} is said not to be timed ({reason}), and {suite.places[operator][0].op} runs it"
        elif operator not in asked:
            yield f"{operator} has a reason ({reason}), and nothing runs it"
    files, keys = {entry.file for entry in entries}, {entry.key for entry in entries}
    yield from (f"the operator benchmark has no file {file}" for file in reasons.files if file not in files)
    yield from (f"the operator benchmark has no entry {key}" for key in reasons.entries if key not in keys)
    yield from (f"nothing has the reason {name}" for name in reasons.sentences if name not in given)
