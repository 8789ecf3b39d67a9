"""The reference networks, in plain torch: each gives a batch, a training step and an inference step on any device."""

from accel_micro.models.registry import NAMES, UnknownModel, build

__all__ = ["NAMES", "UnknownModel", "build"]
