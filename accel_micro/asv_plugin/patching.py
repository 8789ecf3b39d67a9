"""One guarded way to replace a part of asv.

asv has hooks for repositories, environments and pages only. For the rest its functions are replaced, each by
one that calls the original; every module that does so says why.
"""

import functools
import inspect
import sys
from collections.abc import Callable, Sequence
from typing import Any, Final

from asv.util import UserError

_MARK: Final = "__accel_micro__"


class IncompatibleAsv(UserError):  # type: ignore[misc]
    """asv lacks what the plugin builds on. asv prints it as one line."""


def replace(
    owner: Any, name: str, make: Callable[[Callable[..., Any]], Callable[..., Any]], takes: Sequence[str] = ()
) -> None:
    """Replace a function of an asv module or class by `make(original)`, everywhere in asv. Once only.

    Args:
        takes: parameters that the original must have.

    Raises:
        IncompatibleAsv: there is no such function, or it takes other parameters.
    """
    found = vars(owner).get(name)
    kind = type(found) if isinstance(found, (classmethod, staticmethod)) else None
    original = found.__func__ if kind is not None else found
    maker = f"{make.__module__}.{make.__qualname__}"
    if maker in getattr(original, _MARK, ()):
        return
    where = f"{owner.__name__}.{name}"
    if not callable(original):
        raise IncompatibleAsv(f"this asv has no {where}; accel_micro needs asv 0.6.6 or a later 0.6")
    missing = [parameter for parameter in takes if parameter not in inspect.signature(original).parameters]
    if missing:
        raise IncompatibleAsv(
            f"{where} of this asv takes no {', '.join(missing)}; accel_micro needs asv 0.6.6 or a later 0.6"
        )
    replacement = functools.update_wrapper(make(original), original)
    setattr(replacement, _MARK, (*getattr(original, _MARK, ()), maker))
    setattr(owner, name, replacement if kind is None else kind(replacement))
    if inspect.ismodule(owner):
        for module in [m for key, m in sys.modules.items() if key.startswith("asv.")]:
            if vars(module).get(name) is original:
                setattr(module, name, replacement)
