"""What the two names of a comparison mean, and what is said when they mean nothing."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accel_micro.builds import Build, Ledger
from accel_micro.comparison.inventory import Inventory, look
from accel_micro.comparison.sides import NotMeasured, WrongSides, find_scope, find_sides
from tests.comparison.results_folder import NEW, OLD, Results, case

NIGHTLY = "2.15.0.dev202611{:02}"


@pytest.fixture
def inventory(tmp_path: Path) -> Inventory:
    """Two releases and two nightlies; the older ones on both machines, a machine that is called as a device is."""
    results = Results(tmp_path)
    for machine, versions in (
        ("workshop", ("2.13.0", "2.14.1", NIGHTLY.format(1), NIGHTLY.format(6))),
        ("cuda", ("2.13.0", NIGHTLY.format(1))),
    ):
        for version in versions:
            results.trial(version, case(), 1e-5, machine=machine)
    return look(tmp_path, results.ledger)


@pytest.mark.parametrize(
    ("names", "kind", "titles"),
    [
        (("2.14.1", "20261101"), "build", ("torch 2.14.1", "torch 2.15.0.dev20261101")),
        (("2.14.1+cu130", "2026-11-06"), "build", ("torch 2.14.1", "torch 2.15.0.dev20261106")),
        (("release", "nightly"), "build", ("torch 2.14.1", "torch 2.15.0.dev20261106")),
        ((OLD.id[:8], NEW.id), "build", ("torch 2.14.1", "torch 2.15.0.dev20261101")),
        (("cpu", "cuda"), "device", ("cpu", "cuda")),
        (("fp32", "torch.bfloat16"), "dtype", ("float32", "bfloat16")),
        (("workshop", "cuda"), "machine", ("workshop", "cuda")),
        (("machine:workshop", "machine:cuda"), "machine", ("workshop", "cuda")),
    ],
)
def test_names_of_every_kind(
    names: tuple[str, str], kind: str, titles: tuple[str, str], inventory: Inventory
) -> None:
    sides = find_sides(*names, inventory)
    assert [side.kind for side in sides] == [kind, kind]
    assert (sides[0].title, sides[1].title) == titles


def test_head_is_the_installed_build(inventory: Inventory) -> None:
    sides = find_sides("2.14.1", "HEAD", inventory, head=lambda: NEW)
    assert sides[1].value == NEW.id


@pytest.mark.parametrize(
    ("names", "sentence"),
    [
        (("cpu", "fp32"), "'cpu' is a device and 'fp32' is a dtype; two of a kind can be compared"),
        (("2.14.1", "cpu"), "'2.14.1' is a build and 'cpu' is a device"),
        (("cpu", "gpu"), "nothing is called 'gpu'.*devices: cpu, cuda.*machines: cuda, workshop"),
        (("2.14.1", "2.99"), "nothing is called '2.99'; measured builds: .*2.14.1"),
        (("2.14.1", "release"), "are both torch 2.14.1"),
        (("float32", "fp32"), "are both float32"),
        (("cuda", "device:gpu"), "nothing is called 'device:gpu'"),
    ],
)
def test_what_cannot_be_compared(names: tuple[str, str], sentence: str, inventory: Inventory) -> None:
    with pytest.raises(WrongSides, match=sentence):
        find_sides(*names, inventory)


def test_a_name_of_several_kinds_asks_which(tmp_path: Path) -> None:
    results = Results(tmp_path)
    for machine in ("cpu", "cuda"):
        results.trial("2.14.1", case(), 1e-5, machine=machine)
    with pytest.raises(WrongSides, match="may be devices or machines; say device:cpu device:cuda"):
        find_sides("cpu", "cuda", look(tmp_path, results.ledger))


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("20261103", "no nightly of 20261103 is known; measured nearest: 2.15.0.dev20261101 and .*1106"),
        ("local", "no local build has results; measured are 2.13.0, 2.14.1"),
    ],
)
def test_a_build_without_results_names_those_nearest(name: str, sentence: str, inventory: Inventory) -> None:
    with pytest.raises(NotMeasured, match=sentence):
        find_sides("2.14.1", name, inventory)


def test_a_known_build_without_results_names_those_nearest(inventory: Inventory) -> None:
    other = Build("202611037f078c5dd2e8caf06dd79650dd768f9b", "nightly", NIGHTLY.format(3), 1793664000000)
    inventory.ledger.add(other)
    with pytest.raises(
        NotMeasured, match=r"torch 2.15.0.dev20261103 has no results; measured nearest: .*01 and .*06"
    ):
        find_sides("2.14.1", "20261103", inventory)
    with pytest.raises(NotMeasured, match="has no results on workshop"):
        find_sides("2.14.1", "20261103", inventory, machine="workshop")


def test_builds_are_compared_on_the_machine_that_has_both(inventory: Inventory) -> None:
    scope = find_scope(find_sides("2.14.1", "nightly", inventory), inventory, device="cpu", bench=["mm"])
    assert scope.machines == ("workshop", "workshop")
    assert scope.devices == ("cpu", "cpu")
    assert scope.bench == ("mm",)


def test_several_machines_ask_for_one(inventory: Inventory) -> None:
    sides = find_sides("2.13.0", "20261101", inventory)
    with pytest.raises(WrongSides, match="choose with --machine: cuda, workshop"):
        find_scope(sides, inventory)
    assert find_scope(sides, inventory, machine="cuda").machines == ("cuda", "cuda")


def test_builds_on_different_machines_say_which(tmp_path: Path) -> None:
    results = Results(tmp_path)
    results.trial("2.13.0", case(), 1e-5, machine="a")
    results.trial("2.14.1", case(), 1e-5, machine="b")
    inventory = look(tmp_path, results.ledger)
    sides = find_sides("2.13.0", "2.14.1", inventory)
    with pytest.raises(NotMeasured, match=r"torch 2.13.0 was measured on a; torch 2.14.1 was measured on b"):
        find_scope(sides, inventory)
    with pytest.raises(
        NotMeasured, match=r"no build was measured on both machines: a has 2.13.0; b has 2.14.1"
    ):
        find_scope(find_sides("a", "b", inventory), inventory)
    with pytest.raises(NotMeasured, match=r"torch 2.14.1 has no results on a; measured nearest: 2.13.0"):
        find_scope(sides, inventory, machine="a")


def test_devices_and_machines_are_compared_on_the_newest_build(inventory: Inventory) -> None:
    scope = find_scope(find_sides("cpu", "mps", inventory), inventory, machine="workshop")
    assert {inventory.ledger[one].version for one in scope.builds} == {NIGHTLY.format(6)}
    assert scope.devices == ("cpu", "mps")
    scope = find_scope(find_sides("workshop", "machine:cuda", inventory), inventory)
    assert {inventory.ledger[one].version for one in scope.builds} == {NIGHTLY.format(1)}
    scope = find_scope(find_sides("fp32", "bf16", inventory), inventory, build="2.14.1")
    assert scope.dtypes == ("float32", "bfloat16")
    assert scope.machines == ("workshop", "workshop")


@pytest.mark.parametrize(
    ("names", "options", "sentence"),
    [
        (("cpu", "cuda"), {"device": "cpu"}, "two devices are compared, so --device has no meaning"),
        (("2.13.0", "2.14.1"), {"build": "nightly"}, "--build has no meaning"),
        (("workshop", "machine:cuda"), {"machine": "cuda"}, "--machine has no meaning"),
        (("2.13.0", "2.14.1"), {"device": "gpu"}, "unknown device 'gpu'; known: cpu"),
        (("2.13.0", "2.14.1"), {"machine": "moon"}, "no machine 'moon' has results; .*cuda, workshop"),
        (("cpu", "mps"), {"build": "2.99", "machine": "cuda"}, "no build is called '2.99'"),
    ],
)
def test_options_that_contradict(
    names: tuple[str, str], options: dict[str, str], sentence: str, inventory: Inventory
) -> None:
    sides = find_sides(*names, inventory)
    with pytest.raises(WrongSides, match=sentence):
        find_scope(sides, inventory, **options)  # type: ignore[arg-type]


def test_results_without_a_ledger_are_known_by_their_ids(tmp_path: Path) -> None:
    Results(tmp_path).trial("2.14.1", case(), 1e-5)
    Results(tmp_path).trial(NIGHTLY.format(1), case(), 1e-5)
    (tmp_path / "workshop" / "notes.processes.jsonl").write_text("not ours\n")
    (tmp_path / "workshop" / "ffffffff-x.processes.jsonl").write_text("{torn\n")
    (tmp_path / "builds.jsonl").unlink()
    inventory = look(tmp_path, Ledger.beside(tmp_path))
    sides = find_sides("2.14.1", "20261101", inventory)
    assert [side.title for side in sides] == ["torch 2.14.1", "torch nightly 20261101"]


@given(name=st.text(max_size=20))
def test_any_name_is_a_side_or_a_sentence(name: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.getbasetemp() / "any-name"
    if not folder.exists():
        Results(folder).trial("2.14.1", case(), 1e-5)
    inventory = look(folder, Ledger.beside(folder))
    try:
        sides = find_sides("2.14.1", name, inventory, head=lambda: OLD)
    except (WrongSides, NotMeasured) as error:
        assert str(error)
    else:
        assert sides[0].value != sides[1].value
