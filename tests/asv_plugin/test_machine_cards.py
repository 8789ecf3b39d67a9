"""The name of a machine and the card that its results are of, there and back."""

from pathlib import Path
from typing import Any

import pytest
from asv.machine import Machine, MachineCollection

from accel_micro.asv_plugin import machine, saving, state
from accel_micro.asv_plugin.errors import EnvironmentLacks
from accel_micro.devices import chosen
from accel_micro.host import cards
from accel_micro.host.cards import Listed, fingerprint
from tests.host.machines import TWO_CARDS

HOST = Machine.get_unique_machine_name()
FIRST, SECOND = (fingerprint(str(card.uuid)) for card in TWO_CARDS)


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine file of its own, and two cards that a test may change."""
    machine.install()
    saving.install()
    monkeypatch.setattr("accel_micro.host.machine_facts", lambda: {"gpu": "H100, T4"}, raising=False)
    monkeypatch.setattr(cards, "listing", lambda kind: TWO_CARDS if kind == "cuda" else [])
    monkeypatch.setattr(machine, "lock_directory", lambda: tmp_path)
    file = str(tmp_path / "machines.json")
    monkeypatch.setattr(MachineCollection, "get_machine_file_path", staticmethod(lambda: file))
    for name in ("CUDA_VISIBLE_DEVICES", chosen.VARIABLE):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def run_on(monkeypatch: pytest.MonkeyPatch, devices: str, **options: Any) -> Any:
    """What a run on these devices takes for its machine."""
    monkeypatch.setenv(chosen.VARIABLE, devices)
    return Machine.load(interactive=True, **options)


def test_each_card_has_a_machine_and_the_cpu_that_of_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    names = {
        devices: run_on(monkeypatch, devices).machine
        for devices in ("cuda:1", "cpu", "cuda", "", "cpu,cuda:1")
    }
    assert names == {
        "cuda:1": f"{HOST}-cuda1",
        "cpu": HOST,
        "cuda": HOST,
        "": HOST,
        "cpu,cuda:1": f"{HOST}-cuda1",
    }
    second = run_on(monkeypatch, "cuda:1")
    assert second.cuda_card == f"1 ({SECOND})"
    assert second.gpu == TWO_CARDS[1].name
    assert run_on(monkeypatch, "cuda").gpu == "H100, T4"


def test_the_name_that_a_user_gave_the_host_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    MachineCollection.save("lab-3", {"machine": "lab-3", "ram": "a lot"})
    assert run_on(monkeypatch, "cpu").machine == "lab-3"
    for _ in range(2):
        assert run_on(monkeypatch, "cuda:1").machine == "lab-3-cuda1"
        assert run_on(monkeypatch, "cuda:0").machine == "lab-3"
    assert run_on(monkeypatch, "cuda:1").ram == "a lot"
    assert all(machine.is_this(name) for name in ("lab-3", "lab-3-cuda1"))
    assert not machine.is_this("lab-3-cuda2")


def test_a_machine_s_card_is_found_by_whatever_index_it_has(monkeypatch: pytest.MonkeyPatch) -> None:
    for devices in ("cuda:0", "cuda:1"):
        run_on(monkeypatch, devices)
    second = f"{HOST}-cuda1"
    assert machine.devices_of(second, ["cpu", "cuda"]) == ("cpu", "cuda:1")
    assert machine.devices_of(HOST, ["cuda"]) == ("cuda",)
    assert machine.devices_of(None, ["cuda:1"]) == ("cuda:1",)
    assert machine.devices_of("unknown", ["cuda"]) == ("cuda",)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1,0")
    assert machine.devices_of(second, ["cuda"]) == ("cuda",)
    assert machine.devices_of(HOST, ["cuda"]) == ("cuda:1",)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    with pytest.raises(
        EnvironmentLacks, match=rf"machine {second} are of cuda card 1 \({SECOND}\), which this"
    ):
        machine.devices_of(second, ["cuda"])


def test_an_index_leads_to_the_machine_whose_results_are_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    assert machine.name_for(["cuda:1", "cpu"]) == f"{HOST}-cuda1"
    assert machine.name_for(["cuda:0"]) == HOST
    assert machine.name_for(["cuda", "mps"]) is None
    with pytest.raises(EnvironmentLacks, match="cuda:2 is not to be seen here"):
        machine.name_for(["cuda:2"])


def test_a_card_that_was_replaced_is_not_mixed_with_the_one_before(monkeypatch: pytest.MonkeyPatch) -> None:
    run_on(monkeypatch, "cuda")
    new = [Listed(0, "GPU-new", "H100"), TWO_CARDS[1]]
    monkeypatch.setattr(cards, "listing", lambda kind: new)
    derived = f"{HOST}-{fingerprint('GPU-new')}"
    assert run_on(monkeypatch, "cuda").machine == derived
    assert run_on(monkeypatch, "cpu").machine == HOST
    with pytest.raises(EnvironmentLacks, match=r"give it a name of its own with --machine"):
        run_on(monkeypatch, "cuda", machine_name=HOST)
    assert run_on(monkeypatch, "cuda", machine_name="mine").machine == "mine"


def test_a_variable_that_hides_cards_changes_no_name_where_there_are_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(cards, "listing", lambda kind: [])
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3")
    found = run_on(monkeypatch, "")
    assert found.machine == HOST
    assert not hasattr(found, "cuda_card")


def test_a_run_without_a_result_leaves_no_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    results = tmp_path / "results"
    file = results / f"{HOST}-cuda1" / "machine.json"
    found = run_on(monkeypatch, "cuda:1")

    with state.running():
        found.save(str(results))
        assert file.exists()
    assert not file.parent.exists()

    with state.running():
        found.save(str(results))
        found.save(str(results))  # as another run would
    assert file.exists()
    with state.running():
        found.save(str(results))
    assert file.exists(), "it was there before"

    file.unlink()
    with state.running():
        found.save(str(results))
        (file.parent / "sessions.jsonl").write_text("")
    assert file.exists()
