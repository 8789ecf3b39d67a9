import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from accel_micro.asv_plugin.sources import NoInterpreter, find_sources
from accel_micro.builds import Ledger
from accel_micro.builds.index import DEFAULT_INDEXES, INDEXES_VARIABLE, VARIANT_VARIABLE, BadIndex
from accel_micro.builds.wheels import running_python
from tests.builds.index_server import serving


def conf(pythons: list[str] | None = None, settings: object = None) -> SimpleNamespace:
    return SimpleNamespace(pythons=pythons or ["same"], accel_micro=settings)


def test_without_settings_it_is_pytorch_s_own_index_for_this_python_and_machine() -> None:
    found = find_sources(SimpleNamespace(pythons=[]), environ={"PIP_INDEX_URL": "https://pip/"})
    assert (found.indexes, found.otherwise) == (DEFAULT_INDEXES, "https://pip/")
    assert find_sources(SimpleNamespace(pythons=[]), environ={}, indexes=["https://b/"]).otherwise is None
    (target,) = found.targets
    assert target.python == running_python()
    assert target.variants == found.variants.names


def test_the_configuration_then_the_environment_then_the_arguments(tmp_path: Path) -> None:
    configured = conf(settings={"indexes": ["wheels"], "variant": "cu130"})
    found = find_sources(configured, base=tmp_path, environ={})
    assert (found.indexes, found.variants.names) == ((str(tmp_path / "wheels"),), ("cu130",))
    environ = {INDEXES_VARIABLE: "https://a/", VARIANT_VARIABLE: "cu126"}
    found = find_sources(configured, base=tmp_path, environ=environ)
    assert (found.indexes, found.variants.names) == (("https://a/",), ("cu126",))
    found = find_sources(configured, environ=environ, indexes=["https://b/"], variant="cpu")
    assert (found.indexes, found.variants.names) == (("https://b/",), ("cpu",))


def test_a_target_for_each_python() -> None:
    found = find_sources(conf(["same", sys.executable, "3.12", "3.13t"]), environ={}, variant="cpu")
    assert [target.python for target in found.targets] == [running_python(), "3.12", "3.13t"]
    found = find_sources(conf(["3.12"]), environ={}, pythons=["3.10"])
    assert [target.python for target in found.targets] == ["3.10"]


def test_what_is_none() -> None:
    with pytest.raises(BadIndex):
        find_sources(conf(settings={"indexes": 3}), environ={})
    with pytest.raises(NoInterpreter, match="no Python pypy-none was found"):
        find_sources(conf(["pypy-none"]), environ={})


def test_they_are_read_into_a_ledger(tmp_path: Path) -> None:
    with serving() as index:
        (tag,) = {target.tags[0] for target in find_sources(conf(), environ={}).targets}
        address = index.links("/whl/cpu/", [f"torch-2.13.0+cpu-{tag}.whl"])
        sources = find_sources(conf(), environ={}, indexes=[address], variant="cpu")
        ledger = Ledger.beside(tmp_path)
        found = sources.sync(ledger, commits=False, dry_run=True)
        assert ([build.version for build in found.builds], list(ledger)) == (["2.13.0"], [])
        sources.sync(ledger, commits=False)
    assert [build.version for build in ledger] == ["2.13.0"]
    assert [wheel.variant for wheel in ledger.wheels()] == ["cpu"]
