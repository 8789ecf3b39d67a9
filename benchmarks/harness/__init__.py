"""Benchmarks of accel_micro itself: `python -m benchmarks.harness --help`."""

DISCOVERED = False
"""asv need not look for ops here: these modules import what the environments of builds do not have."""
