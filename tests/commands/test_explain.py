"""`capture` and `explain`: what is asked for, what is refused, and what is planted is found."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from accel_micro.cli import app
from accel_micro.commands import explain as explaining
from accel_micro.explain import file
from accel_micro.explain.batches import Switch
from accel_micro.explain.capturing import taking
from accel_micro.explain.capturing.taking import Request
from accel_micro.explain.setting import Setting
from accel_micro.report.explain_words import fit_lines
from tests.explain.test_batches import at
from tests.explain.worlds import LAYERS, capture, row


def run(*arguments: Any) -> Any:
    return CliRunner().invoke(app, [str(argument) for argument in arguments], catch_exceptions=False)


def saved(path: Path, **changes: Any) -> Path:
    file.write(capture(noise=0.01, **changes), path)
    return path


def test_two_files_are_explained(tmp_path: Path) -> None:
    one, other = saved(tmp_path / "a.json", slower={4: 3.0}), saved(tmp_path / "b.json", seed=2)
    done = run("explain", one, other)
    assert done.exit_code == 0
    assert "*  bwd convolution_backward" in done.output and "not measured by turns" in done.output
    done = run("explain", one, other, "--json")
    assert json.loads(done.stdout)["contributions"][0]["label"] == "convolution_backward"
    assert "The contender is faster: speedup" in done.stderr


def test_no_difference_exits_with_4(tmp_path: Path) -> None:
    one = saved(tmp_path / "a.json", processes=2)
    assert run("explain", one, one).exit_code == 4


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ([], "name two captures, or a --model"),
        (["a.json"], "BASELINE CONTENDER"),
        (["a.json", "a.json", "--model", "mnist"], "without files"),
        (["--model", "mnist"], "--contender says what the other side is"),
        (["--model", "mnist", "--batches", "4,8"], "four different sizes"),
        (["--model", "mnist", "--batches", "4,8,16,32,6x4"], "wants numbers, such as 4,8,16,32, not '6x4'"),
        (["--model", "mnist", "--contender", "speed=9"], "unknown switch 'speed'"),
        (["a.json", "torn.json"], "not JSON, or torn"),
        (["a.json", "inference.json"], "training steps and the other of inference"),
    ],
)
def test_wrong_use_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], sentence: str
) -> None:
    monkeypatch.chdir(tmp_path)
    saved(Path("a.json"))
    Path("torn.json").write_text('{"schema": 1,')
    file.write(replace(capture(), training=False), Path("inference.json"))
    done = run("explain", *arguments)
    assert done.exit_code == 2 and sentence in done.output and "Traceback" not in done.output


def test_a_file_that_is_not_there_exits_with_3(tmp_path: Path) -> None:
    assert run("explain", tmp_path / "none.json", tmp_path / "none.json").exit_code == 3


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (["resnet19"], 2, "unknown model 'resnet19'"),
        (["mnist", "--set", "fused=perhaps"], 2, "wants on or off"),
        (["mnist", "--device", "cuda:7", "--processes", "1"], 3, ""),
    ],
)
def test_what_cannot_be_captured(tmp_path: Path, arguments: list[str], code: int, sentence: str) -> None:
    done = run("capture", *arguments, "-o", tmp_path / "a.json")
    assert done.exit_code == code and sentence in done.output and not list(tmp_path.iterdir())


def test_causes_are_tried_only_where_sides_differ(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [row(n, subnormal=0.9 if n == 2 else 0.0) for n in range(len(LAYERS))]
    slow, fast = capture(slower={2: 9.0}, rows=rows), capture()
    asked: list[tuple[bool, str]] = []

    def fake(request: Request, settings: list[Setting], tell: Any) -> Any:
        asked.append((request.ops, str(settings[1])))
        return [slow, fast] if len(asked) == 1 or "flush" in str(settings[1]) else [slow, slow]

    monkeypatch.setattr(explaining, "capture", fake)
    sides = [Setting("cpu", 4), Setting("cpu", 4, {"threads": "1"})]
    found, _ = explaining.explain_here(Request("plain"), sides, True, lambda text: None)
    assert asked == [(True, "cpu batch=4 threads=1"), (False, "cpu batch=4 flush_denormal=on")]
    assert found.ablations[0].confirmed
    asked.clear()
    monkeypatch.setattr(explaining, "capture", lambda *_: asked.append((True, "")) or [slow, slow])  # type: ignore[func-returns-value]
    assert explaining.explain_here(Request("plain"), sides, True, lambda text: None)[0].ablations == []
    assert len(asked) == 1


def test_sides_of_one_name_are_saved_as_two_files(tmp_path: Path) -> None:
    one, other = capture(noise=0.01), capture(noise=0.01, seed=2)
    paths = explaining.save([one, other], tmp_path)
    assert [file.read(path) for path in paths] == [one, other]


@pytest.mark.parametrize("before", ["a process", "all processes", "the ablation's end"])
def test_an_interruption_ends_the_trials_and_keeps_what_was_measured(
    monkeypatch: pytest.MonkeyPatch, before: str
) -> None:
    """It said that nothing was kept, and nothing was: captures of minutes."""
    rows = [row(n, subnormal=0.9 if n == 2 else 0.0) for n in range(len(LAYERS))]
    sides = [capture(slower={2: 9.0}, rows=rows), capture()]
    asked: list[int] = []

    def fake(request: Request, settings: list[Setting], tell: Any) -> Any:
        asked.append(request.processes)
        count = request.processes
        if len(asked) == (1 if before == "all processes" else 2):
            if before == "a process":
                raise KeyboardInterrupt
            count = 3
        return [replace(each, readings=each.readings[:count]) for each in sides]

    monkeypatch.setattr(explaining, "capture", fake)
    told: list[str] = []
    found, captures = explaining.explain_here(
        Request("plain"), [Setting("cpu", 4), Setting("cpu", 4, {"threads": "1"})], True, told.append
    )
    assert found.explanation.differs and len(captures) == 2 and found.ablations == []
    assert len(asked) == (1 if before == "all processes" else 2)
    assert ("interrupted; what was measured before is explained" in told) == (before != "all processes")


@pytest.mark.parametrize("where", ["capture", "narrow"])
def test_an_interruption_keeps_what_batch_sizes_showed(monkeypatch: pytest.MonkeyPatch, where: str) -> None:
    asked: list[str] = []

    def fake(request: Request, settings: list[Setting], tell: Any) -> Any:
        asked.append("capture")
        if where == "capture" and len(asked) > 1:
            raise KeyboardInterrupt
        sizes = [setting.batch or 0 for setting in settings]
        return [at(n, n * (3e-3 if n >= 16 else 4e-3), "Nnpack" if n >= 16 else "Slow2d") for n in sizes]

    def interrupted(*_: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(explaining, "capture", fake)
    monkeypatch.setattr(explaining, "narrow", interrupted)
    settings = [Setting("cpu", size, {"onednn": "off"}) for size in (4, 8, 12, 16, 32, 64)]
    found, _ = explaining.explain_batches(Request("plain"), settings, True, lambda text: None)
    assert found.fit is not None and len(asked) == 2
    (switch,) = found.fit.switches
    assert (switch.below, switch.above) == (12, 16) and (switch.tried is None) == (where == "capture")


def test_the_batch_of_a_switch_is_found_by_halving(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    def rows_of(request: Request, setting: Setting) -> Any:
        assert setting.batch is not None
        asked.append(setting.batch)
        return rows(setting.batch)

    def rows(batch: int) -> Any:
        """As on one thread, where oneDNN has convolutions of 1×1 from 16 on, and those of 3×3 at any size."""
        backend = "Mkldnn" if batch >= 16 else "Slow2d"
        return (*(row(n, backend=backend) for n in (0, 4)), *(row(n, backend="Mkldnn") for n in (1, 2)))

    monkeypatch.setattr(taking, "rows_of", rows_of)
    found = explaining.narrow(
        Request("plain"), Setting("cpu", 4), Switch(8, 32, "Slow2d", "Mkldnn", 2), rows(8), lambda text: None
    )
    assert (found.below, found.above) == (15, 16) and len(asked) == 5


@pytest.mark.parametrize("confirm", [True, False])
def test_a_switch_is_tried_where_the_line_breaks(monkeypatch: pytest.MonkeyPatch, confirm: bool) -> None:
    asked: list[list[str]] = []

    def fake(request: Request, settings: list[Setting], tell: Any) -> Any:
        asked.append([str(setting) for setting in settings])
        assert request.ops == (len(asked) == 1)
        captures = []
        for setting in settings:
            assert setting.batch is not None
            handed = setting.batch >= 16 and setting.switches.get("nnpack") != "off"
            step = at(
                setting.batch, setting.batch * (3e-3 if handed else 4e-3), "Nnpack" if handed else "Slow2d"
            )
            captures.append(replace(step, setting=str(setting)))
        return captures

    monkeypatch.setattr(explaining, "capture", fake)
    monkeypatch.setattr(
        explaining, "narrow", lambda request, setting, switch, rows, tell: replace(switch, below=15)
    )
    settings = [Setting("cpu", size, {"onednn": "off"}) for size in (4, 8, 12, 16, 32, 64)]
    found, _ = explaining.explain_batches(Request("plain"), settings, confirm, lambda text: None)
    assert found.fit is not None
    (switch,) = found.fit.switches
    assert (switch.below, switch.above) == (15, 16)
    if not confirm:
        assert switch.tried is None and len(asked) == 1
        return
    assert asked[1] == ["cpu batch=16 onednn=off", "cpu batch=16 onednn=off nnpack=off"]
    assert switch.tried is not None and switch.tried.confirmed
    *_, told = fit_lines(found.fit)
    assert told.startswith(
        "Confirmed: a step of 16 takes 25 % less than smaller sizes make of it, and with cpu batch"
    )


# The real thing


def own_causes(data: dict[str, Any]) -> list[dict[str, Any]]:
    """Those that are not of the machine: it may be busy while this runs, and then that is told first."""
    return [cause for cause in data["causes"] if cause["name"] != "other programs"]


HERE = ["--processes", "4", "--budget", "0.5", "--replay", "2"]


@pytest.mark.slow
def test_denormal_weights_are_named_and_confirmed(tmp_path: Path) -> None:
    done = run(
        "explain", "--model", "tests.explain.planted:denormal", "--baseline", "threads=1",
        "--contender", "threads=1 flush_denormal=on", "--json", "--save", tmp_path, *HERE,
    )  # fmt: skip
    data = json.loads(done.stdout)
    assert data["contributions"][0]["ops"] == ["aten.sqrt.default"]
    assert data["contributions"][0]["significant"] and data["contributions"][0]["seconds"] > 0
    first, *_ = own_causes(data)
    assert first["name"] == "denormal numbers" and first["confirmed"]
    assert len(list(tmp_path.iterdir())) == 2


@pytest.mark.slow
def test_an_optimizer_without_foreach_is_named() -> None:
    done = run(
        "explain", "--model", "tests.explain.planted:many", "--baseline", "threads=1 foreach=off",
        "--contender", "threads=1 foreach=on", "--json", "--no-confirm", *HERE,
    )  # fmt: skip
    data = json.loads(done.stdout)
    ops = [each for each in data["contributions"] if each["kind"] == "op"]
    assert ops[0]["label"] == "the optimizer's step" and ops[0]["seconds"] > 0
    assert {"aten.addcdiv_.default", "aten._foreach_addcdiv_.Scalar"} <= {
        *ops[0]["ops"]
    } or "_foreach" in str(ops[0]["ops"])
    # Of thousands of calls of some µs the framework is known roughly; the ops are what is named.
    assert data["difference_seconds"] > 0
    assert "optimizer one by one" in {cause["name"] for cause in data["causes"]}


@pytest.mark.slow
def test_slow_python_in_a_module_is_named(tmp_path: Path) -> None:
    for name in ("sleepy", "plain"):
        done = run(
            "capture", f"tests.explain.planted:{name}", "--set", "threads=1", "-o", tmp_path / name, *HERE
        )
        assert done.exit_code == 0, done.output
    data = json.loads(run("explain", tmp_path / "sleepy", tmp_path / "plain", "--json").stdout)
    first = data["contributions"][0]
    assert (first["kind"], first["label"]) == ("framework", "Python in Sleepy 3") and first["significant"]
    assert first["seconds"] == pytest.approx(5e-3 / 4, rel=0.5)
    assert own_causes(data)[0]["name"] == "Python between the ops"


@pytest.mark.slow
def test_a_setting_against_itself_says_nothing() -> None:
    done = run(
        "explain", "--model", "tests.explain.planted:plain", "--baseline", "threads=1", "--contender", "threads=1",
        "--json", *HERE,
    )  # fmt: skip
    data = json.loads(done.stdout)
    assert data["verdict"] in ("invariant", "inconclusive")
    assert not [each for each in data["contributions"] if each["significant"]]
