"""asv's environment of any build, without asv running anything."""

import dataclasses
import os
import pickle
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import asv.environment
import asv.repo
import pytest
from asv.config import Config
from asv.environment import EnvironmentUnavailable

import accel_micro
from accel_micro.asv_plugin import setup, state
from accel_micro.asv_plugin.environment import RETRY_VARIABLE, TorchEnvironment
from accel_micro.asv_plugin.errors import NoEnvironment
from accel_micro.asv_plugin.state import TOOL
from accel_micro.builds import Installation, Installed, Ledger, TorchNotInstalled, Wheel, identify
from accel_micro.builds.ahead import Ahead
from tests.asv_plugin.builds import INIT
from tests.builds.fake_torch import GIT, HERE, wheel_of, write_wheel

BUILD = identify("2.15.0.dev20261105")


@pytest.fixture
def conf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    setup()
    monkeypatch.setenv("ACCEL_MICRO_VARIANT", "cpu")
    monkeypatch.setenv("ACCEL_MICRO_INDEXES", str(tmp_path / "wheels"))
    made = Config()
    made.project = made.repo = made.dvcs = "torch"
    made.pythons = ["same"]
    made.environment_type = "existing"
    made.env_dir, made.results_dir = str(tmp_path / "env"), str(tmp_path / "results")
    return made


@pytest.fixture
def environment(conf: Any) -> TorchEnvironment:
    (made,) = asv.environment.get_environments(conf, [TOOL])
    assert isinstance(made, TorchEnvironment)
    made._store.beside = ()  # nothing from a network
    return made


@pytest.fixture
def ledger(conf: Any, monkeypatch: pytest.MonkeyPatch) -> Ledger:
    monkeypatch.setenv("UV_NO_INDEX", "1")
    made = Ledger.beside(Path(conf.results_dir))
    made.remember(BUILD)
    return made


def put(ledger: Ledger, tmp_path: Path, **options: Any) -> Wheel:
    wheel = wheel_of(write_wheel(tmp_path / "wheels", **{"init": INIT.format(seconds=1), **options}))
    ledger.remember_all([wheel])
    return wheel


def test_it_is_named_by_its_python(environment: TorchEnvironment, conf: Any) -> None:
    assert environment.name == f"torch-py{HERE.python}"
    assert environment.python == HERE.python
    assert environment.installed_commit_hash is None
    assert environment.check_presence()
    assert environment.can_install_project()
    assert not asv.environment.is_existing_only([environment])
    with pytest.raises(NoEnvironment, match="no build to run"):
        environment.run(["-c", "pass"])
    conf.matrix = {"numpy": ["1.26.4"]}
    (other,) = asv.environment.get_environments(conf, [TOOL])
    assert other.name == f"torch-py{HERE.python}-numpy1.26.4"
    assert "numpy==1.26.4" in other._store.beside


def test_what_there_is_not_is_said(conf: Any, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(EnvironmentUnavailable, match="cannot be in asv's matrix"):
        TorchEnvironment(conf, "same", {"torch": "2.9"}, {})
    with pytest.raises(EnvironmentUnavailable, match=r"no Python 3\.1 was found"):
        TorchEnvironment(conf, "3.1", {}, {})


def test_switching_runs_another_interpreter(
    environment: TorchEnvironment, ledger: Ledger, tmp_path: Path, conf: Any
) -> None:
    put(ledger, tmp_path, git=GIT)
    other = identify("2.15.0.dev20261106")
    ledger.remember(other)
    put(ledger, tmp_path, version="2.15.0.dev20261106+cpu")
    repo = asv.repo.get_repo(conf)
    script = "import os, torch, accel_micro; print(torch.__version__, os.environ['ASV_COMMIT'], accel_micro.__file__)"
    for build in (BUILD, other, BUILD):
        environment.install_project(conf, repo, build.id)
        assert environment.installed_commit_hash == build.id
        version, commit, package = environment.run(["-c", script]).split()
        assert version == f"{build.version}+cpu"
        assert commit == build.id
        assert package == accel_micro.__file__, "all builds are measured by the very same code"
    assert Ledger(ledger.path)[BUILD.id].git_version == GIT
    copied = pickle.loads(pickle.dumps(environment))
    assert copied.installed_commit_hash is None, "asv's other processes take leases of their own"
    environment.release()


def test_the_environment_in_use_is_held(
    environment: TorchEnvironment, ledger: Ledger, tmp_path: Path
) -> None:
    wheel = put(ledger, tmp_path)
    environment.switch_to(BUILD.id)
    store, name = environment._store, environment._store.name(wheel, HERE)
    with store.held_alone(name) as alone:
        assert not alone
    environment.release()
    with store.held_alone(name) as alone:
        assert alone


def test_without_a_wheel_the_reason_is_told(
    environment: TorchEnvironment, ledger: Ledger, tmp_path: Path
) -> None:
    assert "no wheel of torch 2.15.0.dev20261105 is known for Python" in str(
        environment.why_not(ledger, BUILD)
    )
    foreign = wheel_of(write_wheel(tmp_path / "wheels", tag="cp39-cp39-linux_x86_64"))
    ledger.remember_all([foreign])
    assert "there are: cp39-cp39-linux_x86_64" in str(environment.why_not(ledger, BUILD))
    with pytest.raises(NoEnvironment, match="has no wheel for Python"):
        environment.source_of(ledger, BUILD)
    wheel = put(ledger, tmp_path)
    assert environment.why_not(ledger, BUILD) is None
    ledger.mark_broken(wheel.file_name, "half of it is missing")
    assert "is broken: half of it is missing" in str(environment.why_not(ledger, BUILD))


def test_broken_is_noted_and_tried_again_when_asked(
    environment: TorchEnvironment, ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheel = put(ledger, tmp_path, says="2.14.0")
    with pytest.raises(NoEnvironment, match=r"could not be installed: its name says"):
        environment.switch_to(BUILD.id)
    assert "its name says" in str(Ledger(ledger.path).wheels(BUILD.id)[0].broken)
    write_wheel(tmp_path / "wheels", init=INIT.format(seconds=1))
    environment._repo.ledger._wheels[wheel.file_name] = wheel  # as a ledger of another machine would say
    with pytest.raises(NoEnvironment, match="its name says"):
        environment.switch_to(BUILD.id)
    monkeypatch.setenv(RETRY_VARIABLE, "1")
    environment.switch_to(BUILD.id)
    environment.release()
    assert Ledger(ledger.path).wheels(BUILD.id)[0].broken is None


def test_a_build_of_one_s_own_is_run_where_it_is(
    environment: TorchEnvironment, ledger: Ledger, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    own = dataclasses.replace(identify("2.16.0a0+gitabc1234"), id="c" * 40, git_version="c" * 40)
    ledger.remember(own)
    ledger.remember_all([Installation(own.id, sys.executable)])
    monkeypatch.setattr(
        "accel_micro.asv_plugin.environment.installed_torch", lambda python: Installed(own, own.version)
    )
    assert environment.source_of(ledger, own) == Path(sys.executable)
    assert environment.why_not(ledger, own) is None
    environment.switch_to(own.id)
    assert environment.run(["-c", "import sys; print(sys.executable)"]).strip() == sys.executable
    monkeypatch.setattr("accel_micro.asv_plugin.environment.MODULES", ("asv_runner", "no_such_module"))
    environment.release()
    with pytest.raises(NoEnvironment, match=r"lacks no_such_module: .* -m pip install no_such_module"):
        environment.switch_to(own.id)


def test_an_interpreter_that_has_another_torch_by_now_is_not_taken(
    environment: TorchEnvironment, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    def other(python: Path) -> Installed:
        if python == HERE.path:
            raise TorchNotInstalled("none")
        return Installed(BUILD, BUILD.version)

    monkeypatch.setattr("accel_micro.asv_plugin.environment.installed_torch", other)
    own = dataclasses.replace(identify("2.16.0a0+gitabc1234"), id="c" * 40)
    ledger.remember(own)
    ledger.remember_all([Installation(own.id, "/somewhere/python")])
    assert environment.why_not(ledger, own) is not None


def test_an_installed_package_is_handed_on_without_its_neighbours(
    environment: TorchEnvironment, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = Path(accel_micro.__file__).resolve().parent.parent
    assert environment._package_path() == str(home), "a checkout is itself"
    monkeypatch.setattr("sysconfig.get_path", lambda name: str(home))
    for _ in range(2):
        folder = Path(environment._package_path())
        assert [path.name for path in folder.iterdir()] == ["accel_micro"]
    done = subprocess.run(
        [sys.executable, "-c", "import accel_micro; print(accel_micro.__version__)"],
        env={**os.environ, "PYTHONPATH": str(folder)},
        cwd="/",
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == accel_micro.__version__


def test_the_limit_is_kept_after_an_installation(
    environment: TorchEnvironment,
    ledger: Ledger,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: Any,
) -> None:
    monkeypatch.delenv("UV_CACHE_DIR", raising=False)
    put(ledger, tmp_path)
    other = identify("2.15.0.dev20261106")
    ledger.remember(other)
    put(ledger, tmp_path, version="2.15.0.dev20261106+cpu")
    monkeypatch.setenv("ACCEL_MICRO_ENVIRONMENTS_GB", "0")
    for build in (BUILD, other):
        environment.switch_to(build.id)
        assert [made.facts.build_id for made in environment._store] == [build.id], "the one in use stays"
    assert "more than the limit of 0 bytes" in caplog.text
    environment.release()


def test_a_limit_that_has_what_was_made_ahead_removed_ends_making_ahead(
    environment: TorchEnvironment,
    ledger: Ledger,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: Any,
) -> None:
    monkeypatch.delenv("UV_CACHE_DIR", raising=False)
    days = [identify(f"2.15.0.dev2026110{day}") for day in (5, 6, 7)]
    ledger.remember_all(days)
    for build in days:
        put(ledger, tmp_path, version=f"{build.version}+cpu")
    ahead = Ahead()
    run = state.Run(ahead=ahead, expected=tuple(build.id for build in days))
    monkeypatch.setattr(state, "active", lambda: run)
    environment.switch_to(days[2].id)
    assert run.expected == (days[0].id, days[1].id)
    for build in days[:2]:
        job = environment.job(ledger, build)
        assert job is not None
        job.store.acquire(job.wheel, job.interpreter).release()
        ahead.made.add(job.name)
    monkeypatch.setattr(ahead, "want", lambda jobs: None)
    monkeypatch.setenv("ACCEL_MICRO_ENVIRONMENTS_GB", "0")
    environment.switch_to(days[1].id)
    assert [made.facts.build_id for made in environment._store] == [days[1].id]
    assert (run.expected, ahead.made) == ((), set())
    assert "The limit on disk has no room for builds that are made ahead" in caplog.text
    environment.release()
    ahead.close()


def test_several_reasons_are_told_together(conf: Any, ledger: Ledger, caplog: Any) -> None:
    from accel_micro.asv_plugin import choosing

    days = [identify(f"2.15.0.dev2026110{day}") for day in (1, 2, 4)]
    ledger.remember_all(days)
    repo = asv.repo.get_repo(conf)
    fake = SimpleNamespace(
        why_not=lambda _, build: None if build.id == days[0].id else f"torch {build.version} is too heavy"
    )
    chosen = choosing.choose(conf, repo, [fake], "20261031..20261104")
    assert chosen == [days[0].id]
    assert "Left out: torch 2.15.0.dev20261102, 2.15.0.dev20261104 is too heavy" in caplog.text
    assert "No nightly is known of 2026-11-03" in caplog.text
