"""Commands as a person types them."""

import re
import shlex
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
