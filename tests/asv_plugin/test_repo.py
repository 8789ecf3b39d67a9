import json
from pathlib import Path
from types import SimpleNamespace

import asv.repo
import pytest
from asv.repo import NoSuchNameError

from accel_micro.asv_plugin import setup
from accel_micro.asv_plugin.errors import EnvironmentLacks, WrongUse
from accel_micro.asv_plugin.repo import TorchRepo
from accel_micro.builds import Installed, Ledger, TorchNotInstalled, identify
from accel_micro.builds.identity import from_id
from tests.builds.fake_torch import write_wheel

NIGHTLIES = ["2.14.0.dev20261105", "2.14.0.dev20261106", "2.14.0.dev20261108"]
RELEASES = ["2.7.0", "2.7.1", "2.8.0"]


@pytest.fixture
def repo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TorchRepo:
    monkeypatch.setattr(
        "accel_micro.asv_plugin.repo.installed_torch", lambda: Installed(identify("2.9.0"), "2.9.0+cpu")
    )
    ledger = Ledger.beside(tmp_path)
    for version in NIGHTLIES + RELEASES:
        ledger.remember(identify(version))
    setup()
    conf = SimpleNamespace(
        repo="torch", dvcs="torch", project="torch", results_dir=str(tmp_path), pythons=["same"]
    )
    made = asv.repo.get_repo(conf)
    assert isinstance(made, TorchRepo)
    return made


def id_of(version: str) -> str:
    return identify(version).id


def test_names_resolve(repo: TorchRepo) -> None:
    assert repo.get_hash_from_name("HEAD") == repo.get_hash_from_name(None) == id_of("2.9.0")
    assert repo.get_hash_from_name("2.8.0+cu126") == id_of("2.8.0")
    assert repo.get_hash_from_name("20261106") == id_of(NIGHTLIES[1])
    assert repo.get_hash_from_name("nightly") == id_of(NIGHTLIES[-1])
    assert repo.get_hash_from_name("2.9.0") == id_of("2.9.0"), "installed, though nothing remembered it yet"
    for version in NIGHTLIES + RELEASES:
        assert repo.get_hash_from_name(repo.get_name_from_hash(id_of(version))) == id_of(version)


def test_unknown_names(repo: TorchRepo) -> None:
    with pytest.raises(NoSuchNameError, match=r"no build is called '1\.0'"):
        repo.get_hash_from_name("1.0")
    with pytest.raises(NoSuchNameError, match="no local build is known yet"):
        repo.get_hash_from_name("local")
    with pytest.raises(WrongUse, match="202611 may be"):
        repo.get_hash_from_name("202611")
    for unknown in ("1.0..2.8.0", "2.8.0..1.0", "1.0"):
        with pytest.raises(WrongUse, match=r"no build is called '1\.0'"):
            repo.get_hashes_from_range(unknown)
    assert repo.get_name_from_hash("0" * 40) is None
    assert repo.get_decorated_hash("0" * 40) == "0" * 8


def test_no_torch(repo: TorchRepo, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> Installed:
        raise TorchNotInstalled("python has no torch; install it")

    monkeypatch.setattr("accel_micro.asv_plugin.repo.installed_torch", missing)
    with pytest.raises(EnvironmentLacks, match="has no torch"):
        repo.get_hash_from_name("HEAD")
    assert repo.get_hash_from_name("2.8.0") == id_of("2.8.0")


def test_ranges(repo: TorchRepo) -> None:
    older, middle, newer = map(id_of, NIGHTLIES)
    assert repo.get_hashes_from_range("20261105..20261108") == [newer, middle]
    assert repo.get_hashes_from_range("nightly") == [newer, middle, older]
    assert repo.get_hashes_from_range("20261106^!") == repo.get_hashes_from_range("20261106") == [middle]
    assert repo.get_hashes_from_range(repo.get_range_spec(older, middle)) == [middle]
    assert repo.get_hashes_from_range(repo.get_new_range_spec("2.7.0", "release")) == [
        id_of("2.8.0"),
        id_of("2.7.1"),
    ]
    assert repo.get_hashes_from_range("2.8.0..nightly") == [newer, middle, older]
    assert repo.get_hashes_from_range("20261108..20261105") == []
    assert repo.get_hashes_from_range("20261101..20261107") == [middle, older], (
        "days without a nightly are fine"
    )
    assert repo.get_hashes_from_range("2026-11-05..2027-01-01") == [newer, middle]


def test_history(repo: TorchRepo) -> None:
    assert repo.get_hash_from_parent("2.8.0") == id_of("2.7.1")
    with pytest.raises(NoSuchNameError, match=r"no release build before 2\.7\.0"):
        repo.get_hash_from_parent("2.7.0")
    assert repo.get_tags() == {version: id_of(version) for version in RELEASES}
    assert repo.get_branch_commits("local") == []
    assert repo.get_new_branch_commits(["nightly"], [id_of(NIGHTLIES[0])]) == [
        id_of(NIGHTLIES[2]),
        id_of(NIGHTLIES[1]),
    ]
    assert repo.get_decorated_hash("20261106") == "20261106 <2.14.0.dev20261106>"


def test_revisions_grow_with_age(repo: TorchRepo) -> None:
    wanted = [*map(id_of, NIGHTLIES), id_of("2.7.0")]
    revisions = repo.get_revisions(wanted)
    assert sorted(revisions, key=lambda build: revisions[build]) == [wanted[-1], *wanted[:-1]]
    assert sorted(wanted, key=repo.get_date) == [wanted[-1], *wanted[:-1]]


def test_results_without_their_ledger_say_what_they_are(repo: TorchRepo, tmp_path: Path) -> None:
    machine = tmp_path / "elsewhere"
    machine.mkdir()
    (machine / "machine.json").write_text(json.dumps({"machine": "elsewhere", "version": 1}))
    commits = {id_of("2.6.0"): 5, "cf30153c4c131c8164ee7798e5022d810682e2cb": 6}
    for commit, date in commits.items():
        result = {
            "commit_hash": commit,
            "env_name": "e",
            "date": date,
            "params": {"machine": "elsewhere"},
            "python": "3.11",
            "requirements": {},
            "result_columns": [],
            "results": {},
            "version": 2,
        }
        (machine / f"{commit[:8]}-e.json").write_text(json.dumps(result))
    local = "cf30153c4c131c8164ee7798e5022d810682e2cb"
    assert repo.get_branch_commits("local") == [local]
    assert repo.get_hash_from_name("2.6.0") == id_of("2.6.0")
    assert repo.get_date(local) == 6
    assert repo.get_name_from_hash(local) == from_id(local).version
    assert set(repo.get_revisions(commits)) == set(commits)


def test_a_build_cannot_be_checked_out(repo: TorchRepo) -> None:
    with pytest.raises(WrongUse, match="no source to check out"):
        repo.checkout("somewhere", id_of("2.8.0"))
    assert not repo.url_match("torch")


def test_pulling_asks_the_indexes(
    repo: TorchRepo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("ACCEL_MICRO_VARIANT", "cpu")
    monkeypatch.setenv("ACCEL_MICRO_INDEXES", str(tmp_path / "wheels"))
    repo.pull()
    assert "is no folder" in caplog.text, "what cannot be read costs nothing that is known"
    assert repo.get_hash_from_name("2.8.0") == id_of("2.8.0")
    write_wheel(tmp_path / "wheels", "2.15.0.dev20261120+cpu")
    repo.pull()
    assert repo.get_hash_from_name("nightly") == id_of("2.15.0.dev20261120")
    monkeypatch.setenv("ACCEL_MICRO_INDEXES", "gopher://wheels")
    with pytest.raises(WrongUse, match="is no index"):
        repo.pull()


def test_remembering_writes_the_ledger(repo: TorchRepo, tmp_path: Path) -> None:
    repo.remember(repo.get_hash_from_name("HEAD"))
    assert id_of("2.9.0") in Ledger.beside(tmp_path)
