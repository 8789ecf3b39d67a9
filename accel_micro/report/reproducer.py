"""A case as a script of its own: torch alone runs it, so it can be pasted into a bug report and run under two builds.

The definition is the suite's own text, and inputs have the same values. Of the timing it does what matters most:
synchronise, warm up, many calls a block, twenty blocks, no garbage collector. The check of the result, the correction
for a machine that slows down and the judgement whether a time can be true are left to accel_micro.
"""

import json
import symtable
import textwrap
from collections.abc import Iterable
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from accel_micro.catalogue.standalone import NotStandalone, Standalone, standalone
from accel_micro.definition import Op
from accel_micro.device_names import kind_of
from accel_micro.measure import CLOCKS
from accel_micro.measure.records import Case
from accel_micro.models import NAMES
from accel_micro.shapes import is_cold
from accel_micro.shell import quoted

if TYPE_CHECKING:
    from jinja2 import Template

_WIDTH: Final = 100
_WAITS: Final = {
    "cpu": "",
    "cuda": "torch.cuda.synchronize({})",
    "xpu": "torch.xpu.synchronize({})",
    "mps": "torch.mps.synchronize()",
    "xla": "wait()",
}
_NAMES: Final = {
    "cpu": "{processor()}",
    "cuda": "{torch.cuda.get_device_name({})}",
    "xpu": "{torch.xpu.get_device_name({})}",
    "mps": "macOS {platform.mac_ver()[0]} on {platform.machine()}",
    "xla": "XLA on {xla_runtime.device_type()}",
}
_IMPORTS: Final = {
    "cpu": ("import platform",),
    "mps": ("import platform",),
    "xla": (
        "import torch_xla",
        "import torch_xla.core.xla_model as xla_model",
        "import torch_xla.runtime as xla_runtime",
    ),
}
_WARM_UP: Final = {"cpu": 0.2, "mps": 1.0}
_BOUNDED: Final = frozenset({"mps", "xla"})
"""Where calls that are queued hold memory for their results."""

_HOW: Final = {
    "whole": "Throughput: blocks of calls, 10 ms or longer. Set OMP_NUM_THREADS to at most the number of free cores:"
    " threads that find none wait for each other.",
    "slope": "Throughput: calls are queued back to back, and the slope over n and 3n calls leaves the last wait out.",
    "latency": "Latency: each call is waited for.",
    "dispatch": "Dispatch: the host's time to enqueue a call, while a kernel that spins keeps the GPU busy.",
    "device": "Device time: between two CUDA events, behind a kernel that spins until all calls are enqueued. Gaps"
    " between kernels count, which accel-micro's own clock leaves out.",
}
_NOT_HERE: Final = ("made", "contexts", "reference_device")
"""Attributes of `Inputs` that the script's own has not."""


def reproducer(op: Op, case: Case, *, clock: str = "throughput", note: str = "") -> str:
    """The script of a case; it prints the median and, as its last line, the bare seconds per call.

    Args:
        clock: what is read. Dispatch and device are read on CUDA; elsewhere throughput is read instead, and the script
            says so.
        note: why it was made, such as `2.1x slower from 2.15.0.dev20261105 to 2.15.0.dev20261106`.

    Raises:
        NotStandalone: the definition cannot do without accel_micro, or the device is none of the suite's.
        ValueError: no such clock.
        TypeError: the shape does not fit the definition.
    """
    if clock not in CLOCKS:
        raise ValueError(f"unknown clock {clock!r}; known: {', '.join(CLOCKS)}")
    kind = kind_of(case.device)
    if kind not in _WAITS:
        raise NotStandalone(
            f"{case} cannot be made a script of its own: it does not know how to wait for {kind}"
        )
    arguments = op.arguments(case.shape)
    network = next((value for value in arguments.values() if value in NAMES), None)
    needed, method = standalone(op, network), _method(clock, kind)
    lacking = [name for name in _NOT_HERE if name in needed.attributes]
    if lacking:
        raise NotStandalone(f"{op.name} cannot be made a script of its own: it asks for t.{lacking[0]}")
    stack = "stack" if "within" in needed.words else ""
    cold = is_cold(case.shape)
    own = _own_imports(kind, method, stack)
    own += ["import itertools"] if cold else []
    own += ["import math"] if cold and "integers" in needed.words else []
    options = {
        "kind": kind,
        "device": case.device,
        "dtype": case.dtype,
        "backward": case.direction == "backward",
        "words": needed.words,
        "stack": stack,
        "method": method,
        "queued": method in {"dispatch", "device"},
        "cold": cold,
        "reads": _reads(op, case),
        **_facts(case, kind, method),
    }
    call = _call(needed.name, arguments)
    _require_no_clash(
        op, needed, own, _template().render(**options, heading="", imports=own, source="", call="0")
    )
    return _template().render(
        **options,
        heading=_heading(case, clock, method, note),
        imports=_sorted({*own, *needed.imports}),
        source=needed.source,
        call=call,
    )


def _method(clock: str, kind: str) -> str:
    if clock == "latency" or (clock in {"dispatch", "device"} and kind == "cuda"):
        return clock
    return "whole" if kind == "cpu" else "slope"


def _reads(op: Op, case: Case) -> int | None:
    """Bytes of its inputs that a call reads, about, where the op states what it moves: half of that; else None."""
    moved = op.stated_work("forward", case.dtype, case.shape).get("bytes")
    return None if moved is None else max(1, round(moved / 2))


def _facts(case: Case, kind: str, method: str) -> dict[str, Any]:
    """What the template asks for besides the case itself."""
    from accel_micro.measure.inputs import SEED, UPSTREAM_SEED

    device = f'"{case.device}"'
    return {
        "seed": f"{SEED:_}",
        "upstream_seed": UPSTREAM_SEED,
        "drawn_in": "float64" if case.dtype == "float64" else "float32",
        "integer": not case.dtype.startswith(("float", "bfloat")),
        "wait": _WAITS[kind].replace("{}", device if ":" in case.device else ""),
        "named": _NAMES[kind].replace("{}", f"'{case.device}'" if ":" in case.device else ""),
        "warm_up": _WARM_UP.get(kind, 0.5),
        "block": "0.005" if method == "slope" else "0.01",
        "bounded": kind in _BOUNDED and method == "slope",
    }


def _own_imports(kind: str, method: str, stack: str) -> list[str]:
    imports = ["import gc", "import statistics", "import time", "import torch", *_IMPORTS.get(kind, ())]
    imports += ["import contextlib"] if stack else []
    imports += ["import sys"] if method in {"dispatch", "device"} else []
    return imports


def _sorted(imports: Iterable[str]) -> list[str]:
    """Python's own, an empty line, and torch's; each with `import` before `from`, and names of one module together."""
    together: dict[str, list[str]] = {}
    for line in sorted(imports, key=lambda line: (line.startswith("from"), line)):
        before, _, name = line.partition(" import ")
        together.setdefault(before, []).extend([name] if name else [])
    lines = [f"{before} import {', '.join(names)}" if names else before for before, names in together.items()]
    of_torch = [line for line in lines if line.split()[1].startswith("torch")]
    return [*(line for line in lines if line not in of_torch), "", *of_torch]


def _call(name: str, arguments: dict[str, Any]) -> str:
    words = ["t", *(f"{key}={_literal(value)}" for key, value in arguments.items())]
    line = f"{name}({', '.join(words)})"
    return line if len(line) < _WIDTH - 11 else f"{name}(\n        {', '.join(words)}\n    )"


def _literal(value: Any) -> str:
    """As the suite's files write it, with double quotes."""
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else repr(value)


def _heading(case: Case, clock: str, method: str, note: str) -> str:
    name = str(case) if clock == "throughput" else case.named(clock)
    how = _HOW[method]
    if clock not in {"throughput", method}:
        how = f"There is no {clock} clock of {case.device} here, so throughput is read. {how}"
    if is_cold(case.shape):
        how += " Each call takes the next of many sets of inputs, so that no cache holds them."
    paragraphs = [
        f"How long PyTorch takes for {case}.",
        note,
        "Run it under each of two builds of torch, by turns and a few times each: it needs torch alone. The last line"
        f" is the seconds per call. {how}",
    ]
    wrapped = [_comment(paragraph) for paragraph in paragraphs if paragraph]
    return "\n#\n".join([*wrapped, f"# Made by: accel-micro reproduce {quoted(name)}"])


def _comment(text: str) -> str:
    words = " ".join(text.split())
    lines = textwrap.wrap(words, _WIDTH - 2, break_long_words=False, break_on_hyphens=False)
    return "\n".join(f"# {line}" for line in lines)


def _require_no_clash(op: Op, needed: Standalone, own: list[str], script: str) -> None:
    """No name means one thing in the definition and another in the rest of the script.

    Raises:
        NotStandalone: one does.
    """
    shared = {line.split()[-1] for line in own if line in needed.imports}
    clashes = (needed.defined - shared) & _names(script)
    if clashes:
        raise NotStandalone(
            f"{op.name} cannot be made a script of its own: it has its own {', '.join(sorted(clashes))}"
        )


def _names(script: str) -> set[str]:
    """Names that a script has for itself: those of the module, and those where it calls the definition."""
    table = symtable.symtable(script, "reproducer.py", "exec")
    names, tables = set(table.get_identifiers()), list(table.get_children())
    while tables:
        inner = tables.pop()
        tables += inner.get_children()
        where_called = inner.get_name() == "prepare"
        names |= {each.get_name() for each in inner.get_symbols() if where_called or each.is_global()}
    return names


@cache
def _template() -> "Template":
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("accel_micro.report", "templates"),
        autoescape=False,  # it is Python and not HTML
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    return environment.get_template("reproducer.py.txt")
