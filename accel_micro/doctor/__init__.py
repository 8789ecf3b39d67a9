"""What is wrong with this machine for timing, and what to do about it."""

from accel_micro.doctor.diagnosis import diagnose, examine, exit_code
from accel_micro.doctor.finding import SEVERITIES, Finding
from accel_micro.doctor.rendering import render, to_json

__all__ = ["SEVERITIES", "Finding", "diagnose", "examine", "exit_code", "render", "to_json"]
