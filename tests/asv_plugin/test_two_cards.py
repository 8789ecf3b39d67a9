"""Two cards of one host through the real asv: two machines in the results, at once, and each card once at a time."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from asv.machine import Machine

from accel_micro.host.cards import fingerprint
from accel_micro.measure.records import Record, read
from tests.asv_plugin import two_cards
from tests.asv_plugin.conftest import Suite, press_ctrl_c, wait_for
from tests.host.machines import TWO_CARDS

pytestmark = pytest.mark.slow

HOST = Machine.get_unique_machine_name()
SHORT = ("run", "-b", "hold=0", "-a", "rounds=1")


@pytest.fixture
def cards(suite: Suite, tmp_path: Path) -> Suite:
    two_cards.plant(suite, tmp_path)
    return suite


def records(suite: Suite, machine: str) -> list[Record]:
    return [record for path in suite.results.glob(f"{machine}/*.processes.jsonl") for record in read(path)]


def facts(suite: Suite, machine: str) -> dict[str, Any]:
    return dict(json.loads((suite.results / machine / "machine.json").read_text()))


def test_runs_on_two_cards_make_two_machines(cards: Suite) -> None:
    for device in ("cuda", "cuda:1"):
        done = cards.asv(*SHORT, devices=device)
        assert done.code == 0, done.output
    assert sorted(path.name for path in cards.results.iterdir() if path.is_dir()) == [HOST, f"{HOST}-cuda1"]
    (first,), (second,) = records(cards, HOST), records(cards, f"{HOST}-cuda1")
    assert (first.hardware["device"], second.hardware["device"]) == ("cuda", "cuda:1")
    assert (first.machine, second.machine) == (HOST, f"{HOST}-cuda1")
    assert first.case == second.case
    assert first.case.device == "cuda", "cases have one name on every card"
    assert facts(cards, HOST)["cuda_card"] == f"0 ({fingerprint(str(TWO_CARDS[0].uuid))})"
    second_facts = facts(cards, f"{HOST}-cuda1")
    assert second_facts["cuda_card"] == f"1 ({fingerprint(str(TWO_CARDS[1].uuid))})"
    assert second_facts["gpu"] == TWO_CARDS[1].name
    assert str(TWO_CARDS[1].uuid) not in json.dumps(second_facts)


PROGRAM = """
import json, sys
from accel_micro.asv_plugin.interleaving import SessionError, interleaved
from accel_micro.asv_plugin.opening import Where
from accel_micro.measure.records import Case

try:
    with interleaved(places=[Where()], devices=["cuda"], machine=sys.argv[1]) as measure:
        record = measure(Where(), Case("ops.waits", "forward", "cuda", "float32", "hold=0"))
        print(json.dumps([record.machine, record.hardware["device"]]))
except SessionError as error:
    print(json.dumps([error.exit_code, str(error)]))
"""


def test_what_is_measured_again_is_measured_on_the_card_of_its_results(cards: Suite) -> None:
    assert cards.asv(*SHORT, devices="cuda:1").code == 0
    second = f"{HOST}-cuda1"

    def again(**variables: str) -> Any:
        command = [sys.executable, "-c", PROGRAM, second]
        return json.loads(
            subprocess.check_output(command, cwd=cards.path, env={**cards.environment, **variables})
        )

    assert again() == [second, "cuda:1"]
    assert again(CUDA_VISIBLE_DEVICES="1") == [second, "cuda"]
    code, why = again(CUDA_VISIBLE_DEVICES="0")
    assert code == 3
    assert why.startswith(f"results of machine {second} are of cuda card 1 (")
    assert len(records(cards, second)) == 3


def test_a_card_that_a_variable_makes_the_first_is_still_the_second_machine(cards: Suite) -> None:
    cards.environment["CUDA_VISIBLE_DEVICES"] = "1"
    done = cards.asv(*SHORT, devices="cuda")
    assert done.code == 0, done.output
    assert len(records(cards, f"{HOST}-cuda1")) == 1
    assert not (cards.results / HOST).exists()


def test_two_cards_at_once_and_one_card_by_one_run(cards: Suite) -> None:
    holding = cards.start("run", "-b", "waits", "-a", "rounds=1", devices="cuda:1")
    try:
        wait_for(lambda: len(records(cards, f"{HOST}-cuda1")) == 1)
        other = cards.asv(*SHORT, devices="cuda:0")
        assert other.code == 0, other.output
        second = cards.asv(*SHORT, devices="cuda:1")
        cards.environment["CUDA_VISIBLE_DEVICES"] = "1"
        by_variable = cards.asv(*SHORT, devices="cuda")
        del cards.environment["CUDA_VISIBLE_DEVICES"]
        on_cpu = cards.asv(*SHORT, devices="cpu")
    finally:
        press_ctrl_c(holding)
        holding.communicate(timeout=30)
    for refused, what in ((second, "cuda:1"), (by_variable, "cuda")):
        assert refused.code == 3, refused.output
        assert f"{what} is being measured by process {holding.pid} (" in refused.output
    assert on_cpu.code == 3, on_cpu.output
    assert f"cpu is in use by process {holding.pid} (" in on_cpu.output
    assert "which measures cuda:1" in on_cpu.output
    assert len(records(cards, HOST)) == 1


def test_another_card_in_the_first_one_s_place_is_another_machine(cards: Suite, tmp_path: Path) -> None:
    assert cards.asv(*SHORT, devices="cuda").code == 0
    program = tmp_path / "programs" / "nvidia-smi"
    program.write_text(program.read_text().replace(str(TWO_CARDS[0].uuid), "GPU-new"))
    done = cards.asv(*SHORT, devices="cuda")
    assert done.code == 0, done.output
    assert len(records(cards, HOST)) == 1
    assert len(records(cards, f"{HOST}-{fingerprint('GPU-new')}")) == 1
    named = cards.asv(*SHORT, "--machine", HOST, devices="cuda")
    assert named.code == 3, named.output
    assert f"results of machine {HOST} are of cuda card 0 (" in named.output


@pytest.mark.parametrize(
    ("devices", "code", "message"),
    [
        ("cuda:0,cuda:1", 1, "a run takes one cuda device, not cuda:0 and cuda:1; start a run for each"),
        ("cuda:2", 3, "cuda:2 does not exist: there are 2 GPUs"),
        ("cuda:x", 1, "unknown device 'cuda:x'; known: cpu, cuda"),
    ],
)
def test_bad_choices_get_a_sentence(cards: Suite, devices: str, code: int, message: str) -> None:
    done = cards.asv(*SHORT, devices=devices)
    assert message in done.output
    assert done.code == code, done.output
    assert "Traceback" not in done.output
