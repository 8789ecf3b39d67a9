"""NVIDIA's `cuda.bench` over cases of the suite, in a process of its own: `python -m benchmarks.harness.nvbench`.

It runs what is registered once and then refuses more, so all cases are points of one axis of one benchmark. CUPTI reads
each call in the same process right before. Its own limit for a point is cut from 15 seconds to 3; the rest is default.
A last argument `brief` cuts further. Cases that would begin after the seconds given are skipped, and not written.
"""

import json
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from time import perf_counter
from typing import Any

from accel_micro.device_names import index_of
from benchmarks.harness.cases import op_benchmarks
from benchmarks.harness.clocks import prepared_case

_WHOLE = ("--timeout", "3")
_BRIEF = ("--timeout", "1", "--min-time", "0.1")
_TAGS = {"cold": "nv/cold/time/gpu/mean", "batch": "nv/batch/time/gpu/mean"}


def read_states(result: Mapping[str, Any]) -> dict[int, dict[str, float]]:
    """Seconds by way of each point of the axis, from what cuda.bench writes as JSON."""
    read: dict[int, dict[str, float]] = {}
    for state in result["benchmarks"][0]["states"]:
        point = int(state["axis_values"][0]["value"])
        values = {
            summary["tag"]: float(data["value"])
            for summary in state.get("summaries") or ()
            for data in summary.get("data", ())
            if data.get("name") == "value" and summary["tag"] in _TAGS.values()
        }
        read[point] = {way: values[tag] for way, tag in _TAGS.items() if tag in values}
    return read


def main() -> None:
    """Read the cases of a file for as many seconds as given, and write what was read of each to another."""
    begun = perf_counter()
    device, todo, done, seconds, *brief = sys.argv[1:]
    import torch
    from cuda import bench

    from accel_micro.devices.cuda_profiler import kernel_seconds

    def stream_of(owner: Any) -> Any:
        external: Any = torch.cuda.ExternalStream
        return torch.cuda.stream(external(owner.get_stream().addressof(), device=index))

    index = index_of(device)
    keys = [tuple(key) for key in json.loads(Path(todo).read_text(encoding="utf-8"))]
    classes = {cls.op.name: cls for cls in op_benchmarks()}
    facts: dict[int, dict[str, Any]] = {}

    def case(state: Any) -> None:
        number = state.get_int64("case")
        name, direction, dtype, shape = keys[number]
        start = perf_counter()
        if start > begun + float(seconds):
            state.skip("no time is left")
            return
        facts[number] = {}
        try:
            with (
                stream_of(state),
                prepared_case(classes[name], direction, device, dtype, shape) as (prepared, _),
            ):
                call = prepared.call
                for _ in range(3):
                    call()
                facts[number]["truth"] = kernel_seconds(call, 10)

                def launch(launched: Any) -> None:
                    with stream_of(launched):
                        call()

                state.exec(launch)
                torch.cuda.synchronize(index)
        except Exception as error:  # one case must not end the rest
            facts[number]["refused"] = f"{type(error).__name__}: {str(error)[:140]}"
            state.skip(str(error)[:140] or "failed")
        facts[number]["spent"] = perf_counter() - start

    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "nvbench.json"
        bench.register(case).add_int64_axis("case", list(range(len(keys))))
        limits = _BRIEF if brief else _WHOLE
        bench.run_all_benchmarks(["cuda.bench", "--devices", str(index), *limits, "--json", str(out)])
        read = read_states(json.loads(out.read_text(encoding="utf-8")))
    found = {" ".join(keys[number]): {**fact, **read.get(number, {})} for number, fact in facts.items()}
    Path(done).write_text(json.dumps(found), encoding="utf-8")


if __name__ == "__main__":
    main()
