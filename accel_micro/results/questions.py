"""What a bisection was asked, as the first line of its file keeps it."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Final, Literal, get_args

from accel_micro.measure.process import CLOCKS
from accel_micro.measure.records import Case

Regress = Literal["slower", "faster", "either", "error"]
REGRESS: Final[tuple[Regress, ...]] = get_args(Regress)
"""What the bad builds do: take longer, take less, either, or fail."""

METRICS: Final = (*CLOCKS, "memory", "error")
"""What is compared: seconds per call of a clock, most bytes held during a call, or the error of the result."""


@dataclass(frozen=True)
class Named:
    """A build of the range."""

    id: str
    version: str


@dataclass(frozen=True)
class Script:
    """Somebody's own check.

    Attributes:
        path: absolute. arguments: handed to it. timeout_seconds: after which a run counts as failed.
        numbers: the last line of its output is what is compared, else how it ends.
        title: what it measures, in a few words, where that is known.
        seconds: the number is how long calls of an operator take in a step of a model.
    """

    path: str
    arguments: tuple[str, ...] = ()
    timeout_seconds: float = 600.0
    numbers: bool = False
    title: str = ""
    seconds: bool = False

    @property
    def what(self) -> str:
        """What it measures, or else where it lies."""
        return self.title or self.path


@dataclass(frozen=True)
class Question:
    """What is searched for, and where.

    Attributes:
        builds: of the whole range, from old to new, those included that are not run.
        left_out: id of a build that is not run → why.
        starts: ids of the builds at which a search begins, one after the other until one is good; one alone where the
            good build was named.
        metric: of `METRICS`. case: what is timed; None for a script.
        variant: of all wheels. python: version, or path, of the interpreter.
        machine: this machine, in words. command: that began it.
    """

    builds: tuple[Named, ...]
    starts: tuple[str, ...]
    regress: Regress = "slower"
    metric: str = "throughput"
    case: Case | None = None
    script: Script | None = None
    left_out: Mapping[str, str] = field(default_factory=dict)
    variant: str = ""
    python: str = "same"
    device: str = "cpu"
    error_rate: float = 0.05
    max_runs: int = 500
    seed: int = 0
    machine: Mapping[str, Any] = field(default_factory=dict)
    command: str = ""

    @property
    def title(self) -> str:
        """What is measured, in one line."""
        return str(self.case) if self.case else self.script.what if self.script else ""

    def ids(self, start: str) -> tuple[str, ...]:
        """Those that are run, from that build on."""
        ids = [build.id for build in self.builds]
        return tuple(one for one in ids[ids.index(start) :] if one not in self.left_out)

    def version(self, build_id: str) -> str:
        """Version of a build of the range."""
        return next((build.version for build in self.builds if build.id == build_id), build_id[:12])

    def between(self, good: str, bad: str) -> tuple[Named, ...]:
        """The builds after one up to another, those too that are not run."""
        ids = [build.id for build in self.builds]
        return self.builds[ids.index(good) + 1 : ids.index(bad) + 1]

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "Question":
        """The inverse of `to_json`; what else is in the line is left out.

        Raises:
            KeyError, TypeError, ValueError: it is none.
        """
        known = {name: data[name] for name in cls.__dataclass_fields__ if name in data}
        known["builds"] = tuple(Named(**build) for build in data["builds"])
        known["starts"] = tuple(data["starts"])
        if data.get("case"):
            known["case"] = Case(**data["case"])
        if data.get("script"):
            script = dict(data["script"])
            known["script"] = Script(**{**script, "arguments": tuple(script["arguments"])})
        if data["regress"] not in REGRESS or data["metric"] not in METRICS:
            raise ValueError(f"a bisection by {data['metric']!r} for {data['regress']!r}")
        return cls(**known)
