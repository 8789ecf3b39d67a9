"""What NVIDIA's driver says about a card's clock, read between blocks: NVML, from the package nvidia-ml-py.

The snapshot of reasons may miss what happened within a block, since the card is idle by the time it is taken; the
driver's counters of the time that a limit held the clock down do not. So both are read. No call waits for the card.
"""

from collections.abc import Callable, Mapping
from time import perf_counter
from typing import Any, Final

from accel_micro.devices.base import Unwatched, WatchState
from accel_micro.host.nvidia import HOLDING, throttle_reasons

NOT_INSTALLED: Final = (
    "clock and throttling are not watched: nvidia-ml-py is not installed (pip install 'accel-micro[nvidia]')"
)
_COUNTED: Final = {0: "power cap", 1: "software thermal slowdown", 2: "sync boost", 3: "hardware slowdown"}
"""NVML_PERF_POLICY_POWER, _THERMAL, _SYNC_BOOST and _BOARD_LIMIT in the words of `THROTTLE_REASONS`."""


class NvmlWatch:
    """Watches one card until it is closed.

    Attributes:
        readings: states read so far, which took `seconds` together.
    """

    def __init__(self, uuid: str, clock: Callable[[], float] = perf_counter) -> None:
        """
        Args:
            uuid: of the card or slice, as torch writes it: without `GPU-`.

        Raises:
            Unwatched: NVML cannot be asked about this card; the message is one sentence.
        """
        try:
            import pynvml
        except ImportError:
            raise Unwatched(NOT_INSTALLED) from None
        self._nvml: Any = pynvml
        self._clock = clock
        self.readings, self.seconds = 0, 0.0
        try:
            pynvml.nvmlInit()
        except Exception as error:  # NVML's own errors exist only where it is
            raise Unwatched(f"clock and throttling are not watched: NVML says {error}") from None
        try:
            self._handle = _handle(pynvml, uuid)
            self._reasons = getattr(
                pynvml,
                "nvmlDeviceGetCurrentClocksEventReasons",
                pynvml.nvmlDeviceGetCurrentClocksThrottleReasons,
            )
            self._reasons(self._handle)
            self._counters = self._readable_counters()
            self._power = self._power_facts()
        except Exception as error:
            pynvml.nvmlShutdown()
            raise Unwatched(f"clock and throttling are not watched: NVML says {error}") from None

    def read(self) -> WatchState:
        """The state now; what the driver does not say this time is left out."""
        start = self._clock()
        nvml, handle = self._nvml, self._handle
        reasons = self._ask(lambda: throttle_reasons(self._reasons(handle))) or []
        held = {}
        for policy, name in self._counters.items():
            nanoseconds = self._held_nanoseconds(policy)
            if nanoseconds is not None:
                held[name] = 1e-9 * nanoseconds
        megahertz = self._ask(lambda: nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_SM))
        celsius = self._ask(lambda: nvml.nvmlDeviceGetTemperature(handle, nvml.NVML_TEMPERATURE_GPU))
        self.readings += 1
        self.seconds += self._clock() - start
        return WatchState(
            reasons=tuple(reason for reason in reasons if reason in HOLDING),
            held_seconds=held,
            hertz=None if megahertz is None else 1e6 * megahertz,
            celsius=celsius,
        )

    def facts(self) -> Mapping[str, float]:
        """Limits of the card's power, watts, and what a reading costs, seconds."""
        cost = {"seconds_a_reading": self.seconds / self.readings} if self.readings else {}
        return {**self._power, **cost}

    def close(self) -> None:
        """Let go of NVML."""
        self._nvml.nvmlShutdown()

    def _ask(self, question: Callable[[], Any]) -> Any:
        try:
            return question()
        except Exception:  # "not supported", or the card has gone
            return None

    def _readable_counters(self) -> dict[int, str]:
        return {
            policy: name for policy, name in _COUNTED.items() if self._held_nanoseconds(policy) is not None
        }

    def _held_nanoseconds(self, policy: int) -> int | None:
        """For how long this limit has held the clock down since the driver was loaded."""
        answer = self._ask(lambda: self._nvml.nvmlDeviceGetViolationStatus(self._handle, policy))
        return None if answer is None else int(answer.violationTime)

    def _power_facts(self) -> dict[str, float]:
        nvml, handle = self._nvml, self._handle
        watts = {
            "power_limit_watts": self._ask(lambda: nvml.nvmlDeviceGetEnforcedPowerLimit(handle)),
            "power_default_limit_watts": self._ask(
                lambda: nvml.nvmlDeviceGetPowerManagementDefaultLimit(handle)
            ),
        }
        return {name: value / 1000 for name, value in watts.items() if value is not None}


def _handle(nvml: Any, uuid: str) -> Any:
    """Of a slice that of the card which it is part of: a slice has no clock of its own."""
    try:
        return nvml.nvmlDeviceGetHandleByUUID(f"GPU-{uuid}")
    except Exception:
        part = nvml.nvmlDeviceGetHandleByUUID(f"MIG-{uuid}")
        return nvml.nvmlDeviceGetDeviceHandleFromMigDeviceHandle(part)
