import json
from pathlib import Path

import pytest

import accel_micro
from accel_micro.asv_plugin.config import NoConfiguration, find_config, load, names_plugin

OURS = (
    '{"version": 1, "repo": "torch", "plugins": [".accel_micro.asv_plugin"], "results_dir": "r" /* mine */}'
)


def write(path: Path, text: str = OURS) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_the_chosen_one_wins(tmp_path: Path) -> None:
    write(tmp_path / "asv.conf.json")
    chosen = write(tmp_path / "other" / "mine.json")
    assert find_config(chosen, start=tmp_path).path == chosen
    folder = write(tmp_path / "other" / "asv.conf.json").parent
    assert find_config(folder, start=tmp_path).path == folder / "asv.conf.json"


def test_a_chosen_one_that_is_none_of_ours_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NoConfiguration, match="is no file"):
        find_config(tmp_path / "gone.json")
    foreign = write(tmp_path / "asv.conf.json", '{"version": 1, "repo": "x"}')
    with pytest.raises(NoConfiguration, match="does not list"):
        find_config(foreign)


def test_the_nearest_of_ours_above_is_taken(tmp_path: Path) -> None:
    ours = write(tmp_path / "asv.conf.json")
    write(tmp_path / "deep" / "asv.conf.json", '{"version": 1, "repo": "x", "plugins": []}')
    (tmp_path / "deep" / "er").mkdir()
    assert find_config(start=tmp_path / "deep" / "er").path == ours


def test_a_name_in_a_comment_is_no_plugin(tmp_path: Path) -> None:
    path = write(tmp_path / "asv.conf.json", '{"plugins": [] // ".accel_micro.asv_plugin"\n}')
    assert not names_plugin(path)
    assert not names_plugin(tmp_path / "gone")


def test_a_torn_file_is_named(tmp_path: Path) -> None:
    path = write(tmp_path / "asv.conf.json", '{"plugins": [".accel_micro.asv_plugin"')
    with pytest.raises(NoConfiguration, match=r"asv\.conf\.json cannot be read"):
        find_config(path)


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "site" / "accel_micro"
    folder.mkdir(parents=True)
    monkeypatch.setattr(accel_micro, "__file__", str(folder / "__init__.py"))
    monkeypatch.chdir(tmp_path)
    return folder


def test_then_the_checkout_s(package: Path) -> None:
    checkout = write(package.parent / "asv.conf.json")
    found = find_config()
    assert (found.path, found.bundled) == (checkout, False)
    assert load(found).results_dir == str(package.parent / "r")


def test_then_the_package_s_with_results_where_one_may_write(package: Path, tmp_path: Path) -> None:
    with pytest.raises(NoConfiguration, match="none came with accel_micro"):
        find_config()
    write(package / "_suite" / "asv.conf.json")
    found = find_config()
    assert found.bundled
    conf = load(found)
    assert conf.benchmark_dir == str(package / "_suite" / "benchmarks")
    assert conf.results_dir == str(tmp_path / "accel-micro-out" / "r")
    assert conf.html_dir == str(tmp_path / "accel-micro-out" / "html")


def test_folders_may_be_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    conf = load(find_config(write(tmp_path / "a" / "c.json")), results=Path("x"), html=Path("/y"))
    assert (conf.results_dir, conf.html_dir) == (str(tmp_path / "x"), "/y")


def test_the_configuration_of_this_project_is_one(tmp_path: Path) -> None:
    path = Path(__file__).parents[2] / "asv.conf.json"
    conf = load(find_config(path))
    assert conf.dvcs == "torch"
    assert json.dumps(conf.branches) == '["release", "nightly", "local"]'
