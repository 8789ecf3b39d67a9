"""Which card an index means, under every way to hide and to number cards."""

import sys
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accel_micro.host import cards, nvidia, read
from accel_micro.host.cards import Card, Listed, UnknownOrder, find, fingerprint
from tests.host.machines import TWO_CARDS

FIRST, SECOND = (str(card.uuid) for card in TWO_CARDS)
MIXED = [Listed(0, "GPU-a1", "small"), Listed(1, "GPU-b2", "large"), Listed(2, "GPU-b3", "large")]


@pytest.mark.parametrize(
    ("variables", "numbers"),
    [
        ({}, [0, 1]),
        ({"CUDA_VISIBLE_DEVICES": "0,1"}, [0, 1]),
        ({"CUDA_VISIBLE_DEVICES": "1,0"}, [1, 0]),
        ({"CUDA_VISIBLE_DEVICES": " 1 "}, [1]),
        ({"CUDA_VISIBLE_DEVICES": SECOND}, [1]),
        ({"CUDA_VISIBLE_DEVICES": SECOND[:8] + "," + FIRST}, [1, 0]),
        ({"CUDA_VISIBLE_DEVICES": ""}, []),
        ({"CUDA_VISIBLE_DEVICES": "-1"}, []),
        ({"CUDA_VISIBLE_DEVICES": "1,-1,0"}, [1]),
        ({"CUDA_VISIBLE_DEVICES": "1,7,0"}, [1]),
        ({"HIP_VISIBLE_DEVICES": "1"}, [1]),
        ({"ROCR_VISIBLE_DEVICES": "1,0"}, [1, 0]),
        ({"ROCR_VISIBLE_DEVICES": "1,0", "HIP_VISIBLE_DEVICES": "1"}, [0]),
        ({"ROCR_VISIBLE_DEVICES": "1", "HIP_VISIBLE_DEVICES": "1"}, []),
    ],
)
def test_an_index_counts_what_is_visible(variables: dict[str, str], numbers: list[int]) -> None:
    found = [find("cuda", index, variables, TWO_CARDS) for index in range(3)]
    assert [card.number for card in found if card is not None] == numbers
    for card in found[: len(numbers)]:
        assert card is not None and card.number is not None
        assert card.uuid == TWO_CARDS[card.number].uuid
        assert card.listed


def test_the_first_card_leaves_the_name_of_the_machine_and_others_add_to_it() -> None:
    first, second = (find("cuda", index, {}, TWO_CARDS) for index in range(2))
    assert first is not None and second is not None
    assert (first.suffix, second.suffix) == ("", "-cuda1")
    assert first.lock != second.lock


def test_where_nothing_lists_cards_the_variables_are_believed() -> None:
    assert find("cuda", 2, {}, []) == Card("cuda", 2, 2)
    hidden = find("cuda", 0, {"CUDA_VISIBLE_DEVICES": "3"}, [])
    assert hidden is not None
    assert (hidden.number, hidden.lock, hidden.suffix, hidden.listed) == (3, "cuda-3", "-cuda3", False)
    named = find("cuda", 0, {"CUDA_VISIBLE_DEVICES": SECOND}, [])
    assert named is not None
    assert named.number is None
    assert named.suffix == f"-cuda-{fingerprint(SECOND)}"
    assert named.lock == f"cuda-{fingerprint(SECOND)}"
    assert find("xpu", 1, {"ZE_AFFINITY_MASK": "2,3"}, []) == Card("xpu", 1, 3)


def test_slices_of_one_card_share_its_lock_and_not_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nvidia, "card_of_slice", lambda uuid: SECOND)
    variables = {"CUDA_VISIBLE_DEVICES": "MIG-1111,MIG-2222"}
    one, other = (find("cuda", index, variables, TWO_CARDS) for index in range(2))
    whole = find("cuda", 1, {}, TWO_CARDS)
    assert one is not None and other is not None and whole is not None
    assert one.lock == other.lock == whole.lock
    assert len({one.suffix, other.suffix, whole.suffix}) == 3
    monkeypatch.setattr(nvidia, "card_of_slice", lambda uuid: None)
    unknown = find("cuda", 0, variables, TWO_CARDS)
    assert unknown is not None and unknown.lock == f"cuda-{fingerprint('MIG-1111')}"


def test_different_cards_in_an_order_of_cuda_s_own_are_refused() -> None:
    with pytest.raises(UnknownOrder, match="CUDA_DEVICE_ORDER=FASTEST_FIRST numbers the different GPUs"):
        find("cuda", 0, {cards.ORDER_VARIABLE: "FASTEST_FIRST"}, MIXED)
    assert find("cuda", 0, {cards.ORDER_VARIABLE: "FASTEST_FIRST"}, TWO_CARDS) is not None
    assert find("cuda", 0, {cards.ORDER_VARIABLE: "FASTEST_FIRST", "CUDA_VISIBLE_DEVICES": "GPU-b2"}, MIXED)
    assert find("cuda", 0, {cards.ORDER_VARIABLE: "PCI_BUS_ID"}, MIXED) is not None


def test_a_uuid_that_is_cut_too_short_is_that_of_no_card() -> None:
    ambiguous = find("cuda", 0, {"CUDA_VISIBLE_DEVICES": "GPU-b"}, MIXED)
    assert ambiguous is not None and ambiguous.number is None


def test_a_fingerprint_does_not_depend_on_how_a_library_writes_the_uuid() -> None:
    assert fingerprint(SECOND) == fingerprint(SECOND.removeprefix("GPU-").upper())
    assert SECOND[4:12] not in fingerprint(SECOND)


def test_cards_are_listed_by_nvml_else_by_nvidia_s_program_else_by_amd_s(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    nvml = SimpleNamespace(
        nvmlInit=lambda: None,
        nvmlShutdown=lambda: None,
        nvmlDeviceGetCount=lambda: 2,
        nvmlDeviceGetHandleByIndex=lambda index: index,
        nvmlDeviceGetUUID=lambda handle: TWO_CARDS[handle].uuid.encode(),  # type: ignore[union-attr]
        nvmlDeviceGetName=lambda handle: TWO_CARDS[handle].name,
        nvmlDeviceGetHandleByUUID=lambda uuid: 1,
        nvmlDeviceGetDeviceHandleFromMigDeviceHandle=lambda handle: handle,
    )
    monkeypatch.setitem(sys.modules, "pynvml", nvml)
    assert cards.listing("cuda") == TWO_CARDS
    assert nvidia.card_of_slice("MIG-1111") == SECOND
    assert cards.listing("xpu") == []
    asked: list[str] = []

    def output(command: list[str], timeout_seconds: float = 10.0) -> str | None:
        asked.append(command[0])
        if command[0] == "nvidia-smi":
            return "\n".join(f"{card.number}, {card.uuid}, {card.name}" for card in TWO_CARDS)
        return '[{"gpu": 0, "bdf": "0000:03:00.0", "uuid": "c4ff"}, {"gpu": 1, "uuid": null}, "odd"]'

    monkeypatch.setitem(sys.modules, "pynvml", None)
    monkeypatch.setattr(read, "output", output)
    assert cards.listing("cuda") == TWO_CARDS
    monkeypatch.setattr(nvidia, "uuids", list)
    assert cards.listing("cuda") == [Listed(0, "c4ff"), Listed(1)]
    assert asked == ["nvidia-smi", "amd-smi"]
    assert nvidia.card_of_slice("MIG-1111") is None


@given(st.text())
def test_garbage_never_raises(text: str) -> None:
    nvidia.parse_uuids(text)
    cards.parse_amd_list(text)


@given(
    st.dictionaries(
        st.sampled_from(["CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES"]), st.text("019-,GPUa "), max_size=2
    )
)
def test_any_variable_gives_a_card_that_is_there_or_none(variables: dict[str, str]) -> None:
    found: Any = find("cuda", 0, variables, TWO_CARDS)
    assert found is None or found.number in (0, 1, None)
