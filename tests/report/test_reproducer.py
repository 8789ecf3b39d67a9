"""Scripts that time one case with torch alone."""

import ast
import builtins
import contextlib
import dis
import gc
import subprocess
import sys
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType
from typing import Any

import pytest
import torch

from accel_micro.catalogue.standalone import NotStandalone
from accel_micro.definition import Op
from accel_micro.measure import CLOCKS
from accel_micro.measure.correctness import tensors_of
from accel_micro.measure.inputs import Inputs, Timed
from accel_micro.measure.prepared import Prepared
from accel_micro.measure.records import Case
from accel_micro.models import NAMES
from accel_micro.report.reproducer import reproducer
from accel_micro.suite import DEVICES, op
from tests.benchmarks.families import OPS, result_of

CANNOT = {name for name in OPS if name.startswith("collectives.")}
COMPILES = {name for name in OPS if name.startswith("compiled.")}
UNWRITTEN = {"overhead.empty", "memory.take_and_give", "memory.many", "memory.from_driver"}
"""Ops whose result is memory that nothing was written to."""

DIRECTIONS = [
    (name, direction)
    for name in sorted(OPS.keys() - CANNOT)
    for direction in (("forward", "backward") if OPS[name].backward else ("forward",))
]


def smallest_shape(made: Op) -> str:
    return "net=mnist n=1" if made.name.startswith("models.") else made.smallest_shape


def smallest(made: Op, direction: str = "forward", shape: str | None = None) -> Case:
    """A case on the CPU where the op exists there, else on a GPU."""
    shape, dtype = shape or smallest_shape(made), made.dtypes[0]
    device = "cpu" if made.why_unsupported("cpu", dtype, shape) is None else "cuda"
    return Case(made.name, direction, device, dtype, shape)


def unknown_names(code: CodeType, known: set[str]) -> Iterator[str]:
    """Names that a script looks up and does not define."""
    for step in dis.get_instructions(code):
        if step.opname in {"LOAD_GLOBAL", "LOAD_NAME"} and step.argval not in known:
            yield step.argval
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from unknown_names(constant, known)


def checked(script: str) -> CodeType:
    """The script, compiled: it names no accel_micro but in comments and words, and defines what it looks up."""
    tree = ast.parse(script)
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    modules = {
        name
        for node in ast.walk(tree)
        if isinstance(node, (ast.Import, ast.ImportFrom))
        for name in (
            [node.module or ""] if isinstance(node, ast.ImportFrom) else [a.name for a in node.names]
        )
    }
    assert "accel_micro" not in names
    roots = {module.partition(".")[0] for module in modules}
    assert roots <= {"torch", "torch_xla", *sys.stdlib_module_names}
    code = compile(script, "reproducer.py", "exec")
    defined = {node.name for node in tree.body if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
    for node in ast.walk(tree):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            defined |= {alias.asname or alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            defined.add(node.id)
    in_classes = {"__name__", "__module__", "__qualname__", "__annotations__"}
    assert not set(unknown_names(code, defined | vars(builtins).keys() | in_classes))
    assert max(map(len, script.splitlines())) <= 160
    assert script == "\n".join(line.rstrip() for line in script.splitlines()) + "\n"
    assert "\n\n\n\n" not in script
    return code


def namespace_of(script: str) -> dict[str, Any]:
    """What the script defines, and nothing run."""
    namespace: dict[str, Any] = {"__name__": "reproducer"}
    exec(checked(script), namespace)
    return namespace


@pytest.fixture(autouse=True)
def _gradients() -> Iterator[None]:
    yield
    torch.set_grad_enabled(True)


# What people read


def golden_case(name: str, direction: str, device: str, dtype: str, start: str) -> tuple[Op, Case]:
    made = OPS[name]
    shape = next(shape for shape in made.all_shapes if shape.startswith(start))
    return made, Case(name, direction, device, dtype, shape)


@pytest.mark.parametrize(
    "case",
    [
        ("matmul.mm", "forward", "cpu", "float32", "m=64 k=64"),
        ("attention.sdpa_flash", "backward", "cuda", "bfloat16", "b=1 h=4"),
        ("optimizer.adamw", "forward", "cpu", "float32", "tensors=160"),
    ],
    ids=lambda case: case[0],
)
def test_script(case: tuple[str, str, str, str, str], golden: Callable[[str], Any]) -> None:
    note = "2.1x slower from 2.15.0.dev20261105 to 2.15.0.dev20261106"
    script = reproducer(*golden_case(*case), note=note)
    checked(script)
    assert golden("txt") == script


def test_it_is_short() -> None:
    assert len(reproducer(*golden_case("matmul.mm", "forward", "cpu", "float32", "m=64")).splitlines()) <= 95


def test_a_note_stays_a_comment() -> None:
    script = reproducer(OPS["matmul.mm"], smallest(OPS["matmul.mm"]), note="slower\nimport os\r\x0cprint(1)")
    assert "# slower import os print(1)\n" in script
    assert "import os" not in {ast.unparse(node) for node in ast.walk(ast.parse(script))}


@pytest.mark.parametrize(
    ("clock", "device", "words"),
    [
        ("throughput", "cpu", "Throughput: blocks of calls"),
        ("throughput", "cuda", "Throughput: calls are queued back to back"),
        ("latency", "mps", "Latency: each call"),
        ("device", "cuda", "Device time: between two CUDA events"),
        ("dispatch", "cuda", "Dispatch: the host's time"),
        ("device", "cpu", "There is no device clock of cpu here, so throughput is read. Throughput: blocks"),
        (
            "dispatch",
            "xla",
            "There is no dispatch clock of xla here, so throughput is read. Throughput: calls",
        ),
    ],
)
def test_it_says_which_clock_it_reads(clock: str, device: str, words: str) -> None:
    case = Case("matmul.mm", "forward", device, "float32", "m=64 k=64 n=64")
    script = reproducer(OPS["matmul.mm"], case, clock=clock)
    heading = " ".join(line.lstrip("# ") for line in script.partition("\n\n")[0].splitlines())
    assert words in heading


# Every op


@pytest.mark.parametrize(("name", "direction"), DIRECTIONS)
def test_it_makes_the_same_inputs_and_result(name: str, direction: str) -> None:
    made = OPS[name]
    shape = next((shape for shape in made.all_shapes if "by=eager" in shape), smallest_shape(made))
    case = smallest(made, direction, shape)
    namespace = namespace_of(reproducer(made, case))
    if case.device != "cpu":
        return
    theirs, ours = outcome(lambda: scripted(namespace, direction)), outcome(lambda: suited(made, case))
    assert [type(value) for value in theirs] == [type(value) for value in ours]
    for one, other in zip(theirs, ours, strict=True):
        if isinstance(one, Exception):
            assert str(one) == str(other)
        elif name in UNWRITTEN:
            assert (one.shape, one.dtype) == (other.shape, other.dtype)
        else:
            torch.testing.assert_close(plain(one), plain(other), rtol=0, atol=0, equal_nan=True)
    assert ours


def outcome(function: Callable[[], Any]) -> list[Any]:
    """The tensors that a function gives, or the error that it raises."""
    torch.manual_seed(0)
    try:
        with torch.enable_grad():
            return tensors_of(function())
    except (NotImplementedError, RuntimeError) as error:
        return [error]


def scripted(namespace: dict[str, Any], direction: str) -> Any:
    if direction == "forward":
        namespace["Timed"] = Timed  # so that what the call leaves elsewhere can be compared
    with contextlib.ExitStack() as stack:
        prepare = namespace["prepare"]
        call = prepare(stack) if prepare.__code__.co_argcount else prepare()
        return result_of(call) if direction == "forward" else call()


def suited(made: Op, case: Case) -> Any:
    inputs = Inputs(
        torch.device("cpu"), getattr(torch, case.dtype), differentiate=case.direction == "backward"
    )
    with contextlib.ExitStack() as stack:
        build = lambda inputs: made.build(inputs, made.arguments(case.shape), stack)  # noqa: E731
        if case.direction == "backward":
            return Prepared.of(build, inputs, True).call()
        built = build(inputs)
        torch.set_grad_enabled(False)
        return result_of(built)


def plain(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.detach().float() if tensor.dtype.itemsize == 1 else tensor.detach()


@pytest.mark.parametrize("name", sorted(CANNOT))
def test_ranks_cannot_stand_alone(name: str) -> None:
    with pytest.raises(
        NotStandalone, match=r"cannot be made a script of its own: it needs accel_micro\.measure\.ranks"
    ):
        reproducer(OPS[name], smallest(OPS[name]))


@pytest.mark.parametrize("name", ["models.training_step", "models.inference_step"])
@pytest.mark.parametrize("net", NAMES)
def test_a_network_comes_along_and_no_other_does(net: str, name: str) -> None:
    of_device = {
        device: reproducer(OPS[name], Case(name, "forward", device, "bfloat16", f"net={net} n=4"))
        for device in DEVICES
    }
    for script in of_device.values():
        checked(script)
    assert set(namespace_of(of_device["cpu"])) & set(NAMES) == {net}


@pytest.mark.parametrize("net", ["mnist", "vae", "mobilenet_v2"])
def test_a_network_has_the_weights_and_the_batch_that_the_suite_gives_it(net: str) -> None:
    case = Case("models.training_step", "forward", "cpu", "float32", f"net={net} n=2")
    theirs = outcome(lambda: scripted(namespace_of(reproducer(OPS[case.op], case)), "forward"))
    (ours,) = outcome(lambda: suited(OPS[case.op], case))
    torch.testing.assert_close(theirs, [ours], rtol=0, atol=0)
    assert ours.isfinite()


@pytest.mark.parametrize("device", [*DEVICES, "cuda:1"])
@pytest.mark.parametrize("clock", CLOCKS)
@pytest.mark.parametrize("name", ["matmul.mm", "attention.sdpa_math", "low_precision.int8_mm"])
def test_every_clock_of_every_device(name: str, clock: str, device: str) -> None:
    made = OPS[name]
    for direction in ("forward", "backward") if made.backward else ("forward",):
        case = Case(name, direction, device, made.dtypes[0], made.smallest_shape)
        checked(reproducer(made, case, clock=clock))


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16", "float64", "int8", "float8_e4m3fn"])
def test_inputs_are_the_same_bit_for_bit(dtype: str) -> None:
    @op(quick=["n=5"], dtypes=[dtype])
    def all_kinds(t, n):  # type: ignore[no-untyped-def]
        """Every kind of input."""
        if t.reference:
            raise AssertionError
        layer = torch.nn.Linear(n, n, device=t.here, dtype=torch.float32)
        kinds = [t(n, n, scale=0.5), t(n, constant=True), t(2, n, 3, 3, channels_last=True)]
        kinds += [t.integers(100, n, n), t.host(n), t.fill(layer.weight, scale=2.0), t.fill(torch.empty(n))]
        return lambda: kinds

    for direction in ("forward", "backward") if dtype not in {"int8", "float8_e4m3fn"} else ("forward",):
        script = reproducer(all_kinds.op, Case(all_kinds.op.name, direction, "cpu", dtype, "n=5"))
        namespace = namespace_of(script)
        theirs, ours = (
            namespace["Inputs"](),
            Inputs(torch.device("cpu"), getattr(torch, dtype), direction == "backward"),
        )
        pairs = list(
            zip(namespace["all_kinds"](theirs, 5)(), all_kinds.op.definition(ours, 5)(), strict=True)
        )
        assert len(pairs) == 7
        for one, other in pairs:
            assert (one.dtype, one.shape, one.stride(), one.requires_grad) == (
                other.dtype,
                other.shape,
                other.stride(),
                other.requires_grad,
            )
            assert torch.equal(plain(one), plain(other))
        if direction == "backward":
            assert [leaf.shape for leaf in theirs.leaves] == [leaf.shape for leaf in ours.leaves]


# What cannot be one


def test_what_it_does_not_know_is_said() -> None:
    made, case = OPS["matmul.mm"], smallest(OPS["matmul.mm"])
    with pytest.raises(ValueError, match="unknown clock 'sundial'; known: "):
        reproducer(made, case, clock="sundial")
    with pytest.raises(NotStandalone, match="it does not know how to wait for abacus"):
        reproducer(made, Case(made.name, "forward", "abacus", "float32", case.shape))


def test_a_definition_may_not_use_a_name_of_the_script() -> None:
    with pytest.raises(NotStandalone, match="it has its own seconds_of"):
        reproducer(_clashing.op, smallest(_clashing.op))

    @op(quick=["n=1"])
    def made_up(t, n):  # type: ignore[no-untyped-def]
        """What is not in the script's inputs."""
        return lambda: t.made

    with pytest.raises(NotStandalone, match=r"it asks for t\.made"):
        reproducer(made_up.op, smallest(made_up.op))


def seconds_of(x: Any) -> Any:
    """A helper whose name the script uses otherwise."""
    return x


@op(quick=["n=1"])
def _clashing(t, n):  # type: ignore[no-untyped-def]
    """One number."""
    x = t(n)
    return lambda: seconds_of(x)


# Synchronising, on devices that are not here


class Told:
    """Counts calls, steps and waits, in order."""

    def __init__(self) -> None:
        self.events: list[str] = []

    def of(self, name: str) -> Callable[..., None]:
        return lambda *_, **options: self.events.append(name + "".join(sorted(options)))


@pytest.mark.parametrize("device", ["cuda", "mps", "xpu"])
@pytest.mark.parametrize("clock", ["throughput", "latency"])
def test_it_waits_before_and_after(clock: str, device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    told = Told()
    monkeypatch.setattr(getattr(torch, device), "synchronize", told.of("wait"))
    case = Case("matmul.mm", "forward", device, "float32", "m=64 k=64 n=64")
    namespace = namespace_of(reproducer(OPS["matmul.mm"], case, clock=clock))
    namespace["seconds_of"](told.of("call"), 3)
    if clock == "latency":
        assert told.events == ["wait", "call", "wait"] * 3
    else:
        assert told.events == ["wait", *["call"] * 3, "wait"]


@pytest.mark.parametrize("newer", [True, False])
def test_xla_marks_each_step_and_waits(newer: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    told = Told()
    xla, core, model, runtime = (
        types.ModuleType(name) for name in ("torch_xla", "core", "xla_model", "runtime")
    )
    if newer:
        xla.sync = told.of("step")  # type: ignore[attr-defined]
    else:
        model.mark_step = told.of("step")  # type: ignore[attr-defined]
    model.wait_device_ops = told.of("wait")  # type: ignore[attr-defined]
    xla.core, xla.runtime, core.xla_model = core, runtime, model  # type: ignore[attr-defined]
    for name, module in {"": xla, ".core": core, ".core.xla_model": model, ".runtime": runtime}.items():
        monkeypatch.setitem(sys.modules, f"torch_xla{name}", module)
    case = Case("matmul.mm", "forward", "xla", "float32", "m=64 k=64 n=64")
    for clock in ("throughput", "latency"):
        told.events.clear()
        namespace = namespace_of(reproducer(OPS["matmul.mm"], case, clock=clock))
        namespace["seconds_of"](told.of("call"), 2)
        idle = ["stepwait", "wait"]
        once = ["call", "step"]
        wanted = [*idle, *once, *once, *idle] if clock == "throughput" else [*idle, *once, *idle] * 2
        assert told.events == wanted


class Gpu:
    """A GPU with a queue of launches that blocks when it is full. All times in microseconds.

    Attributes:
        now: the host's clock. done: when the last work that was queued ends.
    """

    def __init__(self, dispatch: float, device: float, launches: int = 1, waits: bool = False) -> None:
        self.now, self.done = 0.0, 0.0
        self.dispatch, self.device, self.launches, self.waits = dispatch, device, launches, waits
        self.ends: list[float] = []

    def launch(self, microseconds: float) -> None:
        pending = [end for end in self.ends if end > self.now]
        if len(pending) >= 1000:
            self.now = pending[-1000]
        self.done = max(self.now, self.done) + microseconds
        self.ends = [*pending[-1000:], self.done]

    def call(self) -> None:
        for _ in range(self.launches):
            self.now += self.dispatch / self.launches
            self.launch(self.device / self.launches)
        if self.waits:
            self.synchronize()

    def synchronize(self) -> None:
        self.now = max(self.now, self.done) + 10.0

    def sleep(self, cycles: int) -> None:
        self.launch(cycles / 1800)

    def perf_counter(self) -> float:
        return 1e-6 * self.now

    def event(self, enable_timing: bool) -> Any:
        class Event:
            def record(event) -> None:  # noqa: N805
                event.at = self.done  # type: ignore[attr-defined]

            def query(event) -> bool:  # noqa: N805
                return bool(self.now >= event.at)  # type: ignore[attr-defined]

            def elapsed_time(event, end: Any) -> float:  # noqa: N805
                return 1e-3 * float(end.at - event.at)  # type: ignore[attr-defined]

        return Event()


def printed(
    gpu: Gpu, clock: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> float:
    """Seconds that the script prints of such a GPU."""
    monkeypatch.setattr(torch.cuda, "synchronize", gpu.synchronize)
    monkeypatch.setattr(torch.cuda, "_sleep", gpu.sleep)
    monkeypatch.setattr(torch.cuda, "Event", gpu.event)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda: "a GPU of paper")
    case = Case("matmul.mm", "forward", "cuda", "float32", "m=64 k=64 n=64")
    namespace = namespace_of(reproducer(OPS["matmul.mm"], case, clock=clock))
    namespace["time"] = gpu
    namespace["prepare"] = lambda: gpu.call
    try:
        namespace["main"]()
    finally:
        gc.enable()
    return float(capsys.readouterr().out.splitlines()[-1])


@pytest.mark.parametrize(
    ("dispatch", "device", "launches"), [(12.0, 3.0, 1), (4.0, 90.0, 1), (600.0, 200.0, 50)]
)
def test_clocks_of_a_gpu(
    dispatch: float,
    device: float,
    launches: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    wanted = {"dispatch": dispatch, "device": device, "throughput": max(dispatch, device)}
    for clock, microseconds in wanted.items():
        seconds = printed(Gpu(dispatch, device, launches), clock, monkeypatch, capsys)
        assert seconds == pytest.approx(1e-6 * microseconds, rel=0.02), clock


def test_a_call_that_waits_has_no_device_time(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="the call waits for the GPU: there is no device time to read"):
        printed(Gpu(5.0, 5.0, waits=True), "device", monkeypatch, capsys)


# Run


RUN = [
    ("matmul.mm", "forward", "float32"),
    ("matmul.mm", "backward", "bfloat16"),
    ("attention.sdpa_math", "backward", "float32"),
    ("optimizer.adamw", "forward", "float32"),
    ("recurrent.lstm", "backward", "float32"),
    ("random.normal", "forward", "float32"),
    ("indexing.embedding", "backward", "float32"),
    ("low_precision.int8_mm", "forward", "int8"),
    ("overhead.item", "forward", "float32"),
    ("loss.ctc", "backward", "float64"),
    ("compiled.bias_gelu", "forward", "float32"),
    ("models.training_step", "forward", "float32"),
    ("models.inference_step", "forward", "bfloat16"),
]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "direction", "dtype", "clock"),
    [*((*case, "throughput") for case in RUN), *((*case, "latency") for case in RUN[:2])],
)
def test_it_runs_with_torch_alone(name: str, direction: str, dtype: str, clock: str, tmp_path: Path) -> None:
    made = OPS[name]
    script = reproducer(made, Case(name, direction, "cpu", dtype, smallest_shape(made)), clock=clock)
    (tmp_path / "empty").mkdir()
    path = tmp_path / "reproducer.py"
    path.write_text(script, encoding="utf-8")
    command = [sys.executable, "-I", str(path)]
    done = subprocess.run(
        command, cwd=tmp_path / "empty", capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    version, machine, median, last = done.stdout.splitlines()[-4:]
    assert version == f"torch {torch.__version__}, git {torch.version.git_version}"
    assert ", threads: " in machine and ", n = " in machine
    seconds = float(last)
    assert seconds > 0
    assert median.startswith(f"median {1e6 * seconds:.4g} µs per call (quartiles ")


# Cold inputs

COLD_CASES = [
    ("matmul.linear", "forward"),
    ("normalization.layer_norm", "backward"),
    ("indexing.embedding", "forward"),
]


def test_a_cold_script(golden: Callable[[str], Any]) -> None:
    made = OPS["matmul.linear"]
    script = reproducer(made, Case(made.name, "forward", "cpu", "float32", made.cold_shapes[0]))
    checked(script)
    assert golden("txt") == script


@pytest.mark.parametrize(("name", "direction"), COLD_CASES)
def test_a_cold_script_takes_sets_in_turn(name: str, direction: str) -> None:
    made = OPS[name]
    (shape,) = made.cold_shapes
    space = namespace_of(reproducer(made, Case(name, direction, "cpu", "float32", shape)))
    prepared: list[int] = []
    called: list[int] = []
    prepare = space["prepare"]

    def noted(*arguments: Any) -> Callable[[], Any]:
        call, number = prepare(*arguments), len(prepared)
        prepared.append(space["Inputs"].made)

        def noting() -> Any:
            called.append(number)
            return call()

        return noting

    space["prepare"], space["CACHE"] = noted, 8 << 20
    call = space["prepare_cold"]()
    results = [call() for _ in range(2 * len(prepared) + 1)]
    assert called == [number % len(prepared) for number in range(len(results))]
    stated = made.stated_work("forward", "float32", shape).get("bytes", float("inf")) / 2
    read = min(prepared[0], stated)
    assert len(prepared) == max(2, int(2 * (8 << 20) / read) + 1), (
        "more than twice the cache, and no set more"
    )
    first, last = (tensors_of(results[index])[0] for index in (0, -1))
    assert torch.equal(first, last)
