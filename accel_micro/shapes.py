"""A shape as text: `resnet.layer1: n=16 c=64 hw=56` with a name for the reader, and `cache=cold` at its end.

Pure, and needs no torch. The last word is no argument of a definition: it says how the case is measured, with inputs
that no cache holds. It is part of the text so that asv, which knows parameters alone, keeps the two cases apart.
"""

from typing import Any, Final

CACHE: Final = "cache"
"""The word that no definition may have for an argument of its own."""

_COLD: Final = f" {CACHE}=cold"


def parse_shape(text: str) -> dict[str, Any]:
    """The keyword arguments that a shape such as `"vgg16.0: n=1 c=3 layout=channels_last"` stands for.

    A name before a colon is for the reader. Values are int, float, True, False or else text. `cache=cold` is left out.

    Raises:
        ValueError: a word is not of the form key=value.

    >>> parse_shape("first: n=32 p=0.5 causal=True layout=nhwc cache=cold")
    {'n': 32, 'p': 0.5, 'causal': True, 'layout': 'nhwc'}
    """
    arguments: dict[str, Any] = {}
    for word in hot(text).rpartition(": ")[2].split():
        key, equals, value = word.partition("=")
        if not equals or not key.isidentifier():
            raise ValueError(f"shape {text!r}: {word!r} is not key=value")
        arguments[key] = _parse_value(value)
    return arguments


def _parse_value(text: str) -> int | float | bool | str:
    if text in {"True", "False"}:
        return text == "True"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def is_cold(shape: str) -> bool:
    """Whether the case of that shape is measured with inputs that no cache holds.

    >>> is_cold("n=1000000 cache=cold"), is_cold("n=1000000")
    (True, False)
    """
    return shape.endswith(_COLD)


def cold(shape: str) -> str:
    """The shape of the cold case beside a hot one."""
    return hot(shape) + _COLD


def hot(shape: str) -> str:
    """The shape of the hot case beside a cold one; a hot one is its own."""
    return shape.removesuffix(_COLD)
