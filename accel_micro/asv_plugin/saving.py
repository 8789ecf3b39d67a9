"""Results are on disk, whole, after each benchmark.

asv writes results once, at the very end, over the old file: killing it loses hours of measuring, and killing
it while it writes loses what was there before, too.
"""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import asv.util
from asv.results import Results

from accel_micro.asv_plugin import patching

_DIRECTORY = "_accel_micro_results_directory"
_DISCARDED = "_accel_micro_discarded"
_HELD = "_accel_micro_held"


def install() -> None:
    """Make every file that asv writes appear whole, and results after each benchmark."""
    patching.replace(asv.util, "write_json", _write_renamed, takes=("path", "data", "api_version", "compact"))
    patching.replace(Results, "load_data", _note_directory, takes=("result_dir",))
    patching.replace(Results, "add_result", _save_after, takes=("benchmark", "result", "selected_idx"))
    patching.replace(Results, "save", _save_unless_discarded, takes=("result_dir",))


def directory_of(results: Any) -> Path | None:
    """Where these results are saved, or None when they are not (a dry run, no commit named, or discarded)."""
    directory = getattr(results, _DIRECTORY, None)
    return None if directory is None or getattr(results, _DISCARDED, False) else Path(directory)


def discard(results: Any) -> None:
    """Save these no more. What is on disk stays: a build that cannot be had now may have been measured before."""
    setattr(results, _DISCARDED, True)


def hold(results: Any) -> None:
    """Save these no more after each benchmark: whoever asks for it saves them, by `save`."""
    setattr(results, _HELD, True)


def save(results: Any) -> None:
    """Write them now, unless they are not saved."""
    directory = directory_of(results)
    if directory is not None:
        results.save(str(directory))


def _save_unless_discarded(original: Callable[..., Any]) -> Callable[..., Any]:
    def save(self: Any, result_dir: str) -> None:
        if not getattr(self, _DISCARDED, False):
            original(self, result_dir)

    return save


def path_of(results: Any) -> Path | None:
    """The file these results are saved in, or None when they are not."""
    directory = directory_of(results)
    return None if directory is None or results._filename is None else directory / results._filename


def _write_renamed(original: Callable[..., Any]) -> Callable[..., Any]:
    def write_json(path: str, data: Any, api_version: int | None = None, compact: bool = False) -> None:
        # Not ending in `.json`, which asv would take for a result; one a process, as two may write at once.
        partial = Path(f"{path}.{os.getpid()}.part")
        try:
            original(str(partial), data, api_version, compact)
            partial.replace(path)
        finally:
            partial.unlink(missing_ok=True)

    return write_json


def _note_directory(original: Callable[..., Any]) -> Callable[..., Any]:
    def load_data(self: Any, result_dir: str) -> None:
        original(self, result_dir)
        # asv loads the old results exactly when it is going to save.
        setattr(self, _DIRECTORY, result_dir)

    return load_data


def _save_after(original: Callable[..., Any]) -> Callable[..., Any]:
    def add_result(self: Any, benchmark: Any, result: Any, **options: Any) -> None:
        original(self, benchmark, result, **options)
        if not getattr(self, _HELD, False):
            save(self)

    return add_result
