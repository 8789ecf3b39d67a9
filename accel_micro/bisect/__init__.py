"""Which build made an op slower: a noisy search that abstains rather than guess, pure: numpy and scipy only."""

from accel_micro.bisect.driving import Ahead, Journal, Runner, Told, Worker
from accel_micro.bisect.result import Block, Progress, Result, Step
from accel_micro.bisect.searching import MAX_RUNS, Search, replay, search

__all__ = [
    "MAX_RUNS",
    "Ahead",
    "Block",
    "Journal",
    "Progress",
    "Result",
    "Runner",
    "Search",
    "Step",
    "Told",
    "Worker",
    "replay",
    "search",
]
