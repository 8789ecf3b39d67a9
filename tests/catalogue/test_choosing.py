"""One case by a name copied from a page or a table, else by a regular expression."""

import re

import pytest
import torch

from accel_micro import profiles
from accel_micro.catalogue import Chosen, NotOneCase, choose
from accel_micro.comparison.pairing import name_of
from accel_micro.measure import CLOCKS
from accel_micro.suite import DEVICES, op


@op(quick=["n=1"], standard=["gpt2: n=10"], full=["n=11"], dtypes=("float32", "bfloat16"))
def both(t, n):  # type: ignore[no-untyped-def]
    """Both directions."""
    x = t(n)
    return lambda: torch.exp(x)


@op(full=[f"n={n}" for n in range(1, 11)], backward=False, dtypes=("float32",), unsupported=lambda device, n: "too odd" if device == "cpu" and n % 2 else None)  # fmt: skip # noqa: E501
def one(t, n):  # type: ignore[no-untyped-def]
    """One direction; on a CPU of even sizes only."""
    x = t(n)
    return lambda: torch.exp(x)


@op(standard=["n=1", "n=2"], cold=["n=2"], backward=False, dtypes=("float32",))
def warm(t, n):  # type: ignore[no-untyped-def]
    """One direction, with a cold case."""
    x = t(n)
    return lambda: torch.exp(x)


OPS = [both, one]
BOTH, ONE = both.op.name, one.op.name


def chosen(text: str, *devices: str, **options: object) -> Chosen:
    return choose(OPS, text, devices or ("cpu",), **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("shape", both.op.all_shapes)
@pytest.mark.parametrize("device", DEVICES)
def test_a_whole_name_is_literal_on_any_device(device: str, shape: str) -> None:
    case = both.case("backward", device, "bfloat16", shape)
    for clock in CLOCKS:
        assert chosen(case.named(clock)) == Chosen(both, case, clock)
    for name in (str(case), name_of(case), name_of(case).replace("'", '"'), f" {case} "):
        assert chosen(name) == Chosen(both, case)


def test_asv_reads_each_clock_in_a_method_of_that_name() -> None:
    case = both.case("forward", "cpu", "float32", "n=1")
    for clock in CLOCKS:
        method = getattr(both, case.named(clock).rpartition("(")[0].rpartition(".")[2])
        assert (method.accel_micro["clock"], method.accel_micro["direction"]) == (clock, "forward")


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (f"{BOTH} backward float32.*gpt2", f"{BOTH} backward float32 gpt2: n=10 on cpu"),
        (r"both\.time_forward\('cpu', 'bfloat16', 'n=1'\)", f"{BOTH} forward bfloat16 n=1 on cpu"),
        ("one.*n=10", f"{ONE} forward float32 n=10 on cpu"),
        ("one.*n=1", f"{ONE} forward float32 n=10 on cpu"),  # n=1 does not exist there
    ],
)
def test_all_else_is_a_regular_expression(text: str, name: str) -> None:
    assert (str(chosen(text).case), chosen(text).clock) == (name, "throughput")


def test_a_regular_expression_may_name_a_clock() -> None:
    found = chosen(r"one\.time_forward_latency.*n=4")
    assert (found.case.shape, found.clock) == ("n=4", "latency")


def test_it_chooses_among_devices_dtypes_and_a_profile() -> None:
    assert chosen("both forward .* n=11", "cuda", dtypes=["bfloat16"]).case.device == "cuda"
    quick = chosen("both backward", profile=profiles.get("quick"))
    assert (quick.case.dtype, quick.case.shape) == ("float32", "n=1")
    assert chosen("one.*n=3 on", "cuda").case.shape == "n=3"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("both", "12 cases match 'both', and one is needed; write the whole name of one:"),
        ("abacus", "no case on cpu matches 'abacus'; `accel-micro ops --cases` lists those there are"),
        ("bothe", "no case on cpu matches 'bothe'; the nearest names are "),
        ("one.*n=3", "no case on cpu matches 'one.*n=3': too odd"),
        (f"{ONE} forward float32 n=3 on cpu", f"{ONE} forward float32 n=3 on cpu does not exist: too odd"),
        ("(", "'(' is no regular expression: "),
    ],
)
def test_what_is_not_one_case_is_said(text: str, message: str) -> None:
    with pytest.raises(NotOneCase, match=re.escape(message)):
        chosen(text)


def test_eight_candidates_are_listed_and_each_names_itself() -> None:
    with pytest.raises(NotOneCase) as error:
        chosen("both")
    _, *listed, more = str(error.value).split("\n")
    assert (len(listed), more) == (8, "  and 4 more")
    assert [chosen(name).case.named() for name in listed] == [name.strip() for name in listed]
    with pytest.raises(NotOneCase) as error:
        chosen("one")
    assert len(str(error.value).split("\n")) == 1 + 5, "those that do not exist are no candidates"


def test_a_cold_case_is_chosen_by_its_name_or_where_it_is_asked_for() -> None:
    def shape(text: str) -> str:
        return choose([warm], text, ("cpu",)).case.shape

    assert shape("n=2") == "n=2", "what meant one case still does"
    assert shape("n=2 cache=cold") == shape("warm .*cold") == "n=2 cache=cold"
    assert shape(str(warm.case("forward", "cpu", "float32", "n=2 cache=cold"))) == "n=2 cache=cold"
