"""`accel-micro builds`: what its commands print, write and exit with."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from typer.testing import CliRunner

from accel_micro.asv_plugin.config import PLUGIN
from accel_micro.builds import Ledger, Target
from accel_micro.builds.index import INDEXES_VARIABLE, VARIANT_VARIABLE
from accel_micro.cli import app
from tests.builds.fake_torch import GIT, write_wheel
from tests.builds.index_server import Index

HERE = Target.here()
VERSIONS = ["2.15.0.dev20261105+cpu", "2.15.0.dev20261106+cpu", "2.15.0.dev20261108+cpu"]


class Room:
    """A configuration in a folder of its own, and the commands there."""

    def __init__(self, folder: Path, address: str) -> None:
        self.folder = folder
        self.configure({"indexes": [address], "variant": "cpu"})
        self.ledger = folder / "results" / "builds.jsonl"

    def configure(self, settings: object) -> None:
        conf = {
            "version": 1,
            "project": "torch",
            "repo": "torch",
            "plugins": [PLUGIN],
            "accel_micro": settings,
        }
        (self.folder / "asv.conf.json").write_text(json.dumps(conf))

    def __call__(self, *arguments: str) -> Result:
        return CliRunner().invoke(app, ["builds", *arguments, "--config", str(self.folder)])

    def json(self, *arguments: str) -> Any:
        done = self(*arguments, "--format", "json")
        return json.loads(done.stdout)


@pytest.fixture
def room(tmp_path: Path, index: Index, monkeypatch: pytest.MonkeyPatch) -> Room:
    for variable in (INDEXES_VARIABLE, VARIANT_VARIABLE):
        monkeypatch.delenv(variable, raising=False)
    names = []
    for version in VERSIONS:
        path = write_wheel(tmp_path / "served", version, tag=HERE.tags[0])
        index.file(f"/whl/{path.name}", path.read_bytes())
        names.append(path.name)
    return Room(tmp_path, index.links("/whl/cpu/", names))


def test_sync_then_list_then_show(room: Room) -> None:
    done = room("sync")
    assert done.exit_code == 0, done.output
    assert "Noted 3 new builds and 3 new wheels of 1 page (cpu: as configured)" in done.stdout
    done = room("list")
    assert done.exit_code == 0
    for version in VERSIONS:
        assert version.removesuffix("+cpu") in done.stdout
    assert "No nightly is known of 2026-11-07." in done.stdout
    done = room("show", "20261106")
    assert f"commit       {GIT}" in done.stdout
    assert "the same commit as the build before" in done.stdout
    assert room("sync").stdout.startswith("Noted 0 new builds and 0 new wheels")


def test_what_is_offline_is_still_listed(room: Room, index: Index) -> None:
    room("sync")
    index.answers.clear()
    room.configure({"indexes": ["http://127.0.0.1:1/whl"], "variant": "cpu"})
    done = room("sync")
    assert done.exit_code == 3
    assert "127.0.0.1 cannot be reached" in done.stderr
    assert "the ledger goes on with the 3 builds that it knows" in done.stderr
    assert room("list", "20261105..20261108").stdout.count("20261108") == 2
    assert room("list").exit_code == room("show", "nightly").exit_code == 0


def test_json(room: Room) -> None:
    found = room.json("sync")
    assert [build["version"] for build in found["builds"]] == [v.removesuffix("+cpu") for v in VERSIONS]
    assert found["variants"] == ["cpu"]
    listed = room.json("list", "--channel", "nightly", "--last", "1")
    assert [build["date"] for build in listed["builds"]] == ["2026-11-08"]
    assert listed["days_without_nightly"] == ["2026-11-07"]
    assert room.json("show", "20261105")["wheels"][0]["git_version"] == GIT


def test_what_is_measured(room: Room) -> None:
    room("sync")
    machine = room.folder / "results" / "laptop"
    machine.mkdir()
    (machine / "20261105-existing.json").touch()
    measured = room.json("list", "--measured")["builds"]
    assert [build["measured_on"] for build in measured] == [["laptop"]]
    assert len(room.json("list", "--unmeasured")["builds"]) == 2


def test_dry_runs_write_nothing(room: Room) -> None:
    done = room("sync", "--dry-run")
    assert done.stdout.startswith("Would note 3 new builds")
    assert not room.ledger.exists()
    room("sync")
    before = room.ledger.read_bytes()
    kept = room.folder / "kept"
    done = room("archive", "nightly", "--to", str(kept), "--dry-run")
    assert done.exit_code == 0
    assert "Would download 3 wheels, 4" in done.stdout
    assert not kept.exists()
    wheel = write_wheel(room.folder, "2.15.0a0+git1234567")
    assert (
        room("add", str(wheel), "--dry-run").stdout == f"Would add local build 2.15.0a0+git1234567: {GIT}\n"
    )
    assert room("prune", "--dry-run").exit_code == 0
    assert room.ledger.read_bytes() == before


def test_archive_and_go_on_with_it_alone(room: Room, index: Index) -> None:
    room("sync")
    kept = room.folder / "kept"
    done = room("archive", "20261105..20261108", "--to", str(kept))
    assert done.exit_code == 0
    assert "Downloaded 2 wheels, 2." in done.stdout
    assert done.stdout.endswith(f"0 were there. Index: {kept.as_uri()}/\n")
    index.answers.clear()
    room.ledger.unlink()
    assert room("sync", "--index", str(kept)).exit_code == 0
    assert [build.version for build in Ledger(room.ledger)] == [v.removesuffix("+cpu") for v in VERSIONS[1:]]


def test_archiving_what_cannot_be_had(room: Room, index: Index) -> None:
    room("sync")
    for path in list(index.answers):
        if "20261105" in path:
            del index.answers[path]
    done = room("archive", "nightly", "--to", str(room.folder / "kept"))
    assert done.exit_code == 3
    assert "is not there (HTTP 404)" in done.stderr
    assert "Downloaded 2 wheels" in done.stdout


def test_a_changed_file_is_an_error(room: Room, index: Index) -> None:
    page = index.answers["/whl/cpu/torch/"]
    whole = page.body
    page.body = whole.replace(b'.whl"', b".whl#sha256=" + b"a" * 64 + b'"')
    room("sync")
    page.body = page.body.replace(b"a" * 64, b"b" * 64, 1)
    done = room("sync")
    assert done.exit_code == 3
    assert "is not the file it was: its sha256 was aaa" in done.stderr
    name = f"torch-{VERSIONS[0]}-{HERE.tags[0]}.whl"
    assert room("sync", "--accept", name).exit_code == 0
    assert room("sync").exit_code == 0


def test_add_and_prune(room: Room) -> None:
    wheel = write_wheel(room.folder, "2.15.0a0+git1234567")
    assert room("add", str(wheel)).exit_code == 0
    assert room("add", sys.executable).exit_code == 0
    assert {build.channel for build in Ledger(room.ledger)} >= {"local"}
    assert room.json("show", GIT[:8])["state"] == "here"
    done = room("prune", "--limit", "0")
    assert done.exit_code == 0
    assert "Removed 0 environments" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["show", "1.0"], 2, "no build is called '1.0'"),
        (["list", "1.0..nightly"], 2, "no build is called '1.0'"),
        (["show", "202611"], 2, "202611 may be 2.15.0.dev20261105"),
        (["sync", "--index", "ftp://a"], 2, "ftp://a is no index"),
        (["sync", "--index", "nowhere"], 3, "nowhere is no folder"),
        (["sync", "--clone", "nowhere"], 2, "nowhere is no clone of PyTorch"),
        (["sync", "--python", "no-such-python"], 3, "no Python no-such-python was found"),
        (["add", "nothing"], 2, "is no file"),
        (["add", "torch-1.0-py3-none-any.whl"], 3, "cannot be read"),
        (["add", "numpy-1.0-py3-none-any.whl"], 2, "is a wheel of numpy"),
        (["archive", "2.0.0", "--to", "kept"], 2, "no build is called '2.0.0'"),
        (["archive", "nightly"], 2, "--to"),
        (["prune", "--limit", "-1"], 2, "--limit"),
        (["list", "--channel", "weekly"], 2, "weekly"),
    ],
)
def test_wrong_use_and_what_cannot_be(room: Room, arguments: list[str], code: int, said: str) -> None:
    room("sync")
    before = room.ledger.read_bytes()
    done = room(*arguments)
    assert done.exit_code == code, done.output
    assert said in " ".join(done.stderr.replace("│", " ").split())
    assert room.ledger.read_bytes() == before


def test_a_configuration_that_is_none(room: Room) -> None:
    room.configure({"indexes": 5})
    done = room("sync")
    assert done.exit_code == 2
    assert '"indexes" in the configuration is to be a list of addresses, not 5' in done.stderr
    assert CliRunner().invoke(app, ["builds", "list", "--config", "nowhere.json"]).exit_code == 2


def test_an_empty_ledger(room: Room) -> None:
    done = room("list")
    assert (done.exit_code, done.stdout) == (
        0,
        "No such build is known; `accel-micro builds sync` reads the indexes.\n",
    )
    assert room("show", "nightly").exit_code == 2


def test_a_torn_ledger_is_named_and_read(room: Room) -> None:
    room("sync")
    with room.ledger.open("a") as file:
        file.write('{"schema": 1, "id": "tor')
    done = room("list")
    assert done.exit_code == 0
    assert "not a build, skipped" in done.stderr
    assert "20261108" in done.stdout


def test_control_characters_of_a_server_do_not_reach_the_terminal(room: Room, index: Index) -> None:
    index.page("/whl/cpu/torch/", "\x1b[2J\x1b]0;owned\x07 no links")
    done = room("sync")
    assert done.exit_code == 3
    assert "\x1b" not in done.output
    assert "\x07" not in done.output


def test_help_loads_no_connections() -> None:
    code = (
        "import sys, accel_micro.cli\n"
        "try: accel_micro.cli.app(['builds', '--help'])\n"
        "except SystemExit: pass\n"
        "print(sorted({'torch', 'scipy', 'numpy', 'requests', 'pypi_simple', 'asv'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "archive" in done.stdout
    assert done.stdout.splitlines()[-1] == "[]"
