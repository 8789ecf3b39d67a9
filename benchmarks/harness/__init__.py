"""Benchmarks of accel_micro itself: `python -m benchmarks.harness --help`."""
