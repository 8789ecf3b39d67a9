"""Under what a model is captured: device, batch and switches, in words such as `cuda batch=64 foreach=off`."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from accel_micro.dtypes import SHORT

ON_OFF: Final = ("on", "off")


class WrongSetting(ValueError):
    """The words are no setting; the message says which and what could be."""


def _positive(value: str) -> bool:
    return value.isdecimal() and int(value) > 0


def _switch(value: str) -> bool:
    return value in ON_OFF


SWITCHES: Final[dict[str, tuple[Callable[[str], bool], str, str]]] = {
    "batch": (_positive, "a number", "examples in a batch"),
    "threads": (_positive, "a number", "threads that an op may use"),
    "dtype": (lambda value: value in SHORT, " or ".join(SHORT), "dtype of weights and images"),
    "onednn": (_switch, "on or off", "oneDNN for convolutions and products on the CPU"),
    "nnpack": (_switch, "on or off", "NNPACK for convolutions on the CPU"),
    "channels_last": (_switch, "on or off", "images lie in memory pixel by pixel"),
    "foreach": (_switch, "on or off", "the optimizer takes all tensors in one call, or one by one"),
    "fused": (_switch, "on or off", "the optimizer is one kernel"),
    "flush_denormal": (_switch, "on or off", "numbers too small for the format become zero"),
    "tf32": (_switch, "on or off", "float32 products in TF32"),
    "cudnn_benchmark": (_switch, "on or off", "cuDNN tries its algorithms"),
    "build": (bool, "a build's name", "torch of that build, in an environment that is made of it"),
    "python": (bool, "a path", "interpreter of an environment with another torch"),
}
"""Name → what its value must be (as a test and in words), and what it does."""

_WORD: Final = re.compile(r'(?:[^\s,"]|"[^"]*"?)+')
"""A path may have a space: that of the environment of a build has those of the project's folder."""


@dataclass(frozen=True)
class Setting:
    """A device, a batch, and switches that differ from torch's own.

    Attributes:
        batch: None takes the command's.
        switches: by the names of `SWITCHES`, without `batch`.
    """

    device: str = "cpu"
    batch: int | None = None
    switches: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def parse(cls, text: str, device: str = "cpu") -> "Setting":
        """Words with spaces or commas between them; a value that has some is quoted. One without `=` is the device.

        Raises:
            WrongSetting: a word is none of these.

        >>> str(Setting.parse("batch=64, onednn=off"))
        'cpu batch=64 onednn=off'
        """
        batch: int | None = None
        switches: dict[str, str] = {}
        for word in _WORD.findall(text):
            name, equals, value = word.replace('"', "").partition("=")
            if not equals:
                if not re.fullmatch(r"[a-z]+(:\d+)?", word):
                    raise WrongSetting(f"{word!r} is neither a device nor a switch such as threads=1")
                device = word
                continue
            if name not in SWITCHES:
                raise WrongSetting(f"unknown switch {name!r}; known: {', '.join(SWITCHES)}")
            fits, wanted, _ = SWITCHES[name]
            if not fits(value):
                raise WrongSetting(f"{name}= wants {wanted}, not {value!r}")
            if name == "batch":
                batch = int(value)
            else:
                switches[name] = value
        return cls(device, batch, switches)

    def changed(self, **switches: str) -> "Setting":
        """The same with other switches, or another `batch`."""
        batch = int(switches.pop("batch")) if "batch" in switches else self.batch
        return Setting(self.device, batch, {**self.switches, **switches})

    def __str__(self) -> str:
        words = [self.device]
        words += [] if self.batch is None else [f"batch={self.batch}"]
        return " ".join([*words, *(f"{name}={_quoted(value)}" for name, value in self.switches.items())])


def _quoted(value: str) -> str:
    return f'"{value}"' if re.search(r"[\s,]", value) else value


def shown(setting: str) -> str:
    """A setting for people: where a build is named, its interpreter is that of its environment, and left out.

    >>> shown("cpu batch=4 build=20261101 python=/env/bin/python")
    'cpu batch=4 build=20261101'
    """
    words = _WORD.findall(setting)
    if not any(word.startswith("build=") for word in words):
        return setting
    return " ".join(word for word in words if not word.startswith("python="))
