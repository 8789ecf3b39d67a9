"""Torch builds: what they are called, which one is installed, and which ones were ever seen."""

from accel_micro.builds.identity import CHANNELS, Build, identify
from accel_micro.builds.installed import Installed, TorchNotInstalled, installed_torch
from accel_micro.builds.ledger import AmbiguousBuild, Ledger, UnknownBuild
from accel_micro.builds.lines import Installation
from accel_micro.builds.wheels import ChangedFile, Place, Target, Wheel, choose_wheel

__all__ = [
    "CHANNELS",
    "AmbiguousBuild",
    "Build",
    "ChangedFile",
    "Installation",
    "Installed",
    "Ledger",
    "Place",
    "Target",
    "TorchNotInstalled",
    "UnknownBuild",
    "Wheel",
    "choose_wheel",
    "identify",
    "installed_torch",
]
