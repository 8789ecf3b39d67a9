"""Commands are read by a shell as they were meant."""

import shlex
import signal
import subprocess

from hypothesis import given
from hypothesis import strategies as st

from accel_micro.shell import joined, quoted, signal_name


def test_the_name_of_a_case_is_in_double_quotes() -> None:
    name = "matmul.mm.time_forward('cpu', 'float32', 'm=64')"
    assert joined(["accel-micro", "bisect", name]) == f'accel-micro bisect "{name}"'
    assert quoted("it's $HOME") == shlex.quote("it's $HOME")


@given(st.lists(st.text()))
def test_the_words_come_back(words: list[str]) -> None:
    assert shlex.split(joined(words)) == words


def test_a_shell_reads_the_same_words() -> None:
    words = ["it's", "$HOME", "a'`b`", "both \" and '", "it's a \\ one", "it's\nnew", ""]
    done = subprocess.run(
        ["sh", "-c", "printf '%s\\0' " + joined(words)], capture_output=True, text=True, check=True
    )
    assert done.stdout.split("\0")[:-1] == words


def test_every_signal_has_a_name() -> None:
    assert signal_name(-signal.SIGKILL) == "SIGKILL"
    assert signal_name(-60) == "signal 60"
