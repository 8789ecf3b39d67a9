"""A suite with an index of builds that answer at once, and `accel-micro bisect` on it."""

import subprocess
import sys
from dataclasses import dataclass

from tests.asv_plugin.builds import Builds
from tests.asv_plugin.conftest import Done, ended


@dataclass
class Bisecting:
    """The builds of a suite, with what is bisected."""

    builds: Builds

    def start(self, *arguments: str, **environment: str) -> "subprocess.Popen[str]":
        """Start `accel-micro bisect` with these arguments."""
        suite = self.builds.suite
        return subprocess.Popen(
            [sys.executable, "-m", "accel_micro", "bisect", *arguments],
            cwd=suite.path,
            env={**suite.environment, **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def run(self, *arguments: str, **environment: str) -> Done:
        """Run it to its end."""
        return ended(self.start(*arguments, **environment), 280)
