"""Stored results, read back: records to trials, fast enough for years of builds."""

from accel_micro.results.trials import Key, Measured, Stored, Trial, read_each, read_results

__all__ = ["Key", "Measured", "Stored", "Trial", "read_each", "read_results"]
