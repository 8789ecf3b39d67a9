"""Samples to estimates, ratios and verdicts, pure: numpy and scipy only."""

from accel_micro.stats.judging import judge, judge_family
from accel_micro.stats.verdict import Verdict

__all__ = ["Verdict", "judge", "judge_family"]
