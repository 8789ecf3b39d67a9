"""What `asv run`, `asv show` and `asv compare` print: without the cases that are not run here.

The parameter lists are the same on every machine, so most rows of asv's tables would read n/a.
"""

import math
from collections.abc import Callable, Iterator
from typing import Any

import asv.commands.compare
import asv.results
from asv import util

from accel_micro.asv_plugin import patching
from accel_micro.asv_plugin.state import OP_KEY, combinations


def install() -> None:
    """Replace how a result with parameters is laid out, and what a comparison lists."""
    patching.replace(
        asv.results, "_format_benchmark_result", _format_run_cases, takes=("result", "benchmark", "max_width")
    )
    patching.replace(
        asv.commands.compare, "unroll_result", _unroll_run_cases, takes=("benchmark_name", "params")
    )


def _format_run_cases(original: Callable[..., Any]) -> Callable[..., Any]:
    def format_result(result: Any, benchmark: Any, max_width: int | None = None) -> list[str]:
        if OP_KEY not in benchmark:
            return list(original(result, benchmark, max_width))
        rows = [
            [*values, util.human_value(value, benchmark["unit"], err=error)]
            for values, (value, error) in zip(combinations(benchmark), result, strict=True)
            if not _is_nan(value)
        ]
        hidden = len(result) - len(rows)
        lines: list[str] = []
        if rows:
            header = [*benchmark["param_names"], benchmark[OP_KEY]["clock"]]
            lines = util.format_text_table([header, *rows], 1).splitlines()
        return lines + ([f"(+{hidden} not run here)"] if hidden else [])

    return format_result


def _unroll_run_cases(original: Callable[..., Any]) -> Callable[..., Any]:
    def unroll_result(benchmark_name: str, params: Any, *values: Any) -> Iterator[Any]:
        for row in original(benchmark_name, params, *values):
            if not _is_nan(row[1]):
                yield row

    return unroll_result


def _is_nan(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)
