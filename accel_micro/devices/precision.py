"""How torch multiplies float32 numbers, asked for such that no combination of its old and new switches fails.

torch 2.9 has switches of its own for each library (`fp32_precision`); once one of them is set, reading the older ones
raises where the two contradict each other.
"""

from collections.abc import Callable
from typing import Any, Final

_DEFAULTS: Final = ("none", "ieee")
MIXED: Final = "by fp32_precision"
"""What the older switches say when the newer ones were set in a way that they have no word for."""


def float32_modes(**switches: str) -> dict[str, str]:
    """`torch.get_float32_matmul_precision`, and of the newer switches those that were set.

    Args:
        switches: name under which to note it, and where the newer switch is: `"mkldnn.matmul"` below `torch.backends`.
    """
    import torch

    modes = {"float32_matmul_precision": str(_asked(torch.get_float32_matmul_precision, MIXED))}
    # What is at its default is left out: older builds of torch do not have it, and are not set in another way.
    for name, path in switches.items():
        value = newer(path)
        if value not in _DEFAULTS:
            modes[name] = value
    return modes


def newer(path: str) -> str:
    """The newer switch below `torch.backends`; "none" where this torch does not have it."""
    import torch

    place: Any = torch.backends
    for part in path.split("."):
        place = getattr(place, part, None)
    return str(_asked(lambda: getattr(place, "fp32_precision", "none"), "none"))


def allows_tf32(backend: Any, path: str) -> bool:
    """Whether a library multiplies float32 in TF32, by the older switch `backend.allow_tf32` or else the newer one."""
    return bool(_asked(lambda: backend.allow_tf32, newer(path) == "tf32"))


def _asked(question: Callable[[], Any], otherwise: Any) -> Any:
    try:
        return question()
    except RuntimeError:
        return otherwise
