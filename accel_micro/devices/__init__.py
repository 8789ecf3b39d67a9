"""One file a backend behind one small protocol, and the registry of their names."""

from accel_micro.devices.base import Device, DeviceUnavailable, UnknownDevice
from accel_micro.devices.registry import DEVICE_KINDS, available, get, wrong_name

__all__ = ["DEVICE_KINDS", "Device", "DeviceUnavailable", "UnknownDevice", "available", "get", "wrong_name"]
