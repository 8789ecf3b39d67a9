"""The full speed of this machine: what its speed probe reads when nothing slows it.

A process may only ever see the slow mode of a shared machine, so the full speed is remembered between processes. Each
process contributes one number, a fast percentile of its own probes; the full speed is the median of the eight fastest
contributions, so that a freak does not set it. It never decays: values corrected today and next month share one
reference.
"""

import platform
from collections.abc import Callable, Sequence
from statistics import median, quantiles
from typing import Any, Final

from accel_micro.devices import spin, store

_STORE: Final = "speeds"
_FASTEST_KEPT: Final = 8
_FEWEST_PROBES: Final = 10


def host_key() -> str:
    """What the host's full speed depends on: the processor and the interpreter that runs the spin."""
    interpreter = f"{platform.python_implementation()} {platform.python_version()}"
    return f"{store.cpu_model()} / {interpreter} / spin {spin.VERSION}"


def known(key: str) -> float | None:
    """The remembered full speed in the probe's unit, None when nothing was contributed yet."""
    return _reference(store.load(_STORE).get(key, []))


def _reference(contributions: Any) -> float | None:
    return median(float(x) for x in contributions) if contributions else None


def contribute(key: str, rates: Sequence[float]) -> None:
    """Add one process's probe rates. Fewer than ten are ignored: too few to have a fast percentile."""
    if len(rates) < _FEWEST_PROBES:
        return
    _keep(key, [_fast(rates)])


def establish(key: str, probe: Callable[[], float], now: Callable[[], float], seconds: float = 2.0) -> float:
    """The full speed; when none is remembered, probe for that many seconds first, in contributions of an eighth."""
    remembered = known(key)
    if remembered is not None:
        return remembered
    end = now() + seconds
    rates: list[float] = []
    while now() < end or len(rates) < 8 * _FEWEST_PROBES:
        rates.append(probe())
    share = len(rates) // 8
    fast = [_fast(rates[i * share : (i + 1) * share]) for i in range(8)]
    _keep(key, fast)
    return known(key) or _reference(fast) or max(fast)


def _fast(rates: Sequence[float]) -> float:
    """The fast percentile of one process's rates, the ninetieth."""
    return quantiles(rates, n=10, method="inclusive")[-1]


def _keep(key: str, contributions: Sequence[float]) -> None:
    def change(data: dict[str, Any]) -> None:
        data[key] = sorted([*data.get(key, []), *contributions], reverse=True)[:_FASTEST_KEPT]

    store.update(_STORE, change)
