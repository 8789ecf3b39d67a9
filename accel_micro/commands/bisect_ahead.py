"""Which builds of a bisection are made ready before a block asks for them, and when: never while one runs."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from accel_micro.builds.ahead import Ahead, Job


class Prepared(Protocol):
    """A `bisect.Runner` that makes builds ready, ahead too."""

    expected: "Expected"

    def __call__(self, builds: Sequence[str]) -> Sequence[float | None]:
        """See `bisect.Runner`."""


class Expected:
    """What coming blocks may ask for; see `bisect.Ahead`.

    A build that is needed now is installed in the foreground, and meanwhile the next one is in the background, so that
    two downloads share the wait. While others are waited for, it goes on in the background.

    Args:
        job: what there is to make for a build, by its id; None where there is nothing.
    """

    def __init__(self, ahead: "Ahead", job: "Callable[[str], Job | None]") -> None:
        self._ahead, self._job = ahead, job
        self._jobs: dict[str, Job | None] = {}
        self._likely: tuple[str, ...] = ()

    def expect(self, builds: Sequence[str]) -> None:
        """See `bisect.Ahead`."""
        self._likely = tuple(builds)

    def idle(self) -> None:
        """See `bisect.Ahead`."""
        self._want(self._likely)

    def needed(self, builds: Sequence[str]) -> None:
        """The first of these is made ready in the foreground now: make the others meanwhile, then what is likely."""
        if builds:
            self._want([build for build in (*builds[1:], *self._likely) if build != builds[0]])

    def finish(self, build: str) -> None:
        """Wait for a build that is being made, since it is needed now."""
        job = self._known(build)
        if job is not None:
            self._ahead.finish(job.name)

    def pause(self) -> None:
        """When this returns, nothing is downloaded or installed by this worker."""
        self._ahead.pause()

    def _want(self, builds: Sequence[str]) -> None:
        jobs = [self._known(build) for build in dict.fromkeys(builds)]
        self._ahead.want([job for job in jobs if job is not None])

    def _known(self, build: str) -> "Job | None":
        if build not in self._jobs:
            self._jobs[build] = self._job(build)
        return self._jobs[build]
