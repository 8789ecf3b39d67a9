"""Three years of builds: work grows with their number, not with its square. Counted, since time says little here.

`python -m benchmarks.harness ledger` tells the seconds.
"""

from collections import Counter
from datetime import date, timedelta
from pathlib import Path

import pytest

from accel_micro.builds import Ledger, Target, identify, lines
from accel_micro.builds import ledger as ledger_module
from accel_micro.builds.ranges import missing_days, select
from accel_micro.builds.sync import sync
from accel_micro.builds.web import Web

BUILDS = 3000
VERSIONS = [f"2.15.0.dev{date(2018, 9, 1) + timedelta(n):%Y%m%d}" for n in range(BUILDS)]
HERE = Target.here(("cpu",))


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("index")
    names = [f"torch-{version}+cpu-{HERE.tags[0]}.whl" for version in VERSIONS]
    (folder / "torch").mkdir()
    links = [f'<a href="https://example.org/{name}">{name}</a>' for name in names]
    (folder / "torch" / "index.html").write_text("\n".join(links))
    return folder


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often the file is read and written, and versions are parsed for ordering."""
    counts: Counter[str] = Counter()
    for module, name in ((lines, "read"), (lines, "append"), (ledger_module, "_parsed")):
        original = getattr(module, name)

        def call(*arguments: object, original: object = original, name: str = name) -> object:
            counts[name] += 1
            return original(*arguments)  # type: ignore[operator]

        monkeypatch.setattr(module, name, call)
    return counts


def test_syncing_writes_once_and_then_not_at_all(
    index: Path, web: Web, tmp_path: Path, counted: Counter[str]
) -> None:
    path = tmp_path / "builds.jsonl"
    found = sync(Ledger(path), [str(index)], [HERE], web, commits=False)
    assert len(found.builds) == len(found.wheels) == BUILDS
    assert counted["append"] == 1
    assert counted["read"] <= 3
    before = counted.copy()
    found = sync(Ledger(path), [str(index)], [HERE], web, commits=False)
    assert found.builds == found.wheels == found.gone == []
    assert counted["append"] == before["append"]
    assert counted["read"] == before["read"] + 1
    assert len(path.read_text().splitlines()) == 2 * BUILDS


def test_a_range_orders_the_builds_once(counted: Counter[str]) -> None:
    ledger = Ledger(Path("nowhere.jsonl"))
    releases = [f"2.{minor}.{patch}" for minor in range(20, 50) for patch in range(10)]
    for version in (*VERSIONS, *releases):
        ledger.add(identify(version))
    chosen = select(ledger, f"{VERSIONS[1]}..{VERSIONS[-2]}")
    assert [build.version for build in chosen] == VERSIONS[2:-1]
    assert missing_days(chosen) == []
    assert counted["_parsed"] <= len(releases)
