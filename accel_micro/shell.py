"""Commands as a person types them, and what ended them."""

import re
import shlex
import signal
from collections.abc import Iterable
from typing import Final

_PLAIN_IN_DOUBLE_QUOTES: Final = re.compile(r"[^\"$`\\!]*")


def quoted(word: str) -> str:
    """A word for a shell, in double quotes where it has single ones, as the names of cases do.

    >>> print(quoted("a b"), quoted("time_forward('cpu')"))
    'a b' "time_forward('cpu')"
    """
    if "'" in word and _PLAIN_IN_DOUBLE_QUOTES.fullmatch(word):
        return f'"{word}"'
    return shlex.quote(word)


def joined(words: Iterable[str]) -> str:
    """The words of a command; `shlex.split` gives them back."""
    return " ".join(map(quoted, words))


def signal_name(exit_code: int) -> str:
    """The name of the signal that a negative exit code stands for.

    >>> signal_name(-9), signal_name(-60)
    ('SIGKILL', 'signal 60')
    """
    try:
        return signal.Signals(-exit_code).name
    except ValueError:  # real-time signals have no names
        return f"signal {-exit_code}"
