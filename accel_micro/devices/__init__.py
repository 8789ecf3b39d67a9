"""One file a backend behind one small protocol, and the registry of their names."""

from accel_micro.devices.base import Device, DeviceUnavailable, UnknownDevice
from accel_micro.devices.registry import DEVICE_KINDS, available, get

__all__ = ["DEVICE_KINDS", "Device", "DeviceUnavailable", "UnknownDevice", "available", "get"]
