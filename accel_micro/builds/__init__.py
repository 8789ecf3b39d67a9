"""Torch builds: what they are called, which one is installed, and which ones were ever seen."""

from accel_micro.builds.identity import CHANNELS, Build, identify
from accel_micro.builds.installed import Installed, TorchNotInstalled, installed_torch
from accel_micro.builds.ledger import AmbiguousBuild, Ledger, UnknownBuild

__all__ = [
    "CHANNELS",
    "AmbiguousBuild",
    "Build",
    "Installed",
    "Ledger",
    "TorchNotInstalled",
    "UnknownBuild",
    "identify",
    "installed_torch",
]
