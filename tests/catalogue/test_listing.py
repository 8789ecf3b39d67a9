"""What a profile runs of an op, and what that costs."""

import pytest
import torch

from accel_micro import profiles
from accel_micro.catalogue import list_ops
from accel_micro.catalogue.listing import USUAL_SECONDS
from accel_micro.measure.records import Case, Record
from accel_micro.suite import op

QUICK, STANDARD = profiles.get("quick"), profiles.get("standard")


@op(quick=["n=1"], standard=["n=2"], full=["n=3"], dtypes=("float32", "bfloat16"))
def both(t, n):  # type: ignore[no-untyped-def]
    """Both directions.

    More of it.
    """
    x = t(n)
    return lambda: torch.exp(x)


@op(quick=["n=1"], backward=False, unsupported=lambda device, dtype: f"no {dtype} on {device}" if device == "cpu" and dtype == "bfloat16" else None)  # fmt: skip # noqa: E501
def one(t, n):  # type: ignore[no-untyped-def]
    """One direction."""
    x = t(n)
    return lambda: torch.exp(x)


OPS = [both, one]
NAME = both.op.name


def record(seconds: float, shape: str = "n=1", device: str = "cpu", op: str = NAME) -> Record:
    case = Case(op, "forward", device, "float32", shape)
    return Record(case, seconds={"prepare": 0.25 * seconds, "measure": 0.75 * seconds})


def test_a_profile_runs_what_it_says() -> None:
    listing = list_ops(OPS, QUICK, ["cpu"])
    first, second = listing.rows
    assert (first.op, first.text, first.directions) == (NAME, "Both directions.", ("forward", "backward"))
    assert [(case.direction, case.dtype, case.shape) for case in first.cases] == [
        ("forward", "float32", "n=1"),
        ("backward", "float32", "n=1"),
    ]
    assert len(second.cases) == 1
    assert listing.rounds == 1
    standard = list_ops(OPS, STANDARD, ["cpu", "cuda"])
    assert [len(row.cases) for row in standard.of("cpu")] == [6, 1]
    assert [row.skipped for row in standard.of("cpu")] == [{}, {"no bfloat16 on cpu": 1}]
    assert [len(row.cases) for row in standard.of("cuda")] == [8, 3], "what does not exist is no case"
    assert standard.devices == ("cpu", "cuda")
    assert standard.families == (first.family,)


def test_costs_come_from_what_ran_here() -> None:
    assert list_ops(OPS, QUICK, ["cpu"]).rows[0].seconds == 2 * USUAL_SECONDS
    records = [record(1.0), record(3.0), record(2.0), record(9.0, "n=2"), record(50.0, device="cuda")]
    first, second = list_ops(OPS, QUICK, ["cpu"], records).rows
    known, family = 2.0, 5.5  # medians: of the case, and of both cases of the family
    assert first.seconds == pytest.approx(known + family)
    assert (first.known, second.known) == (1, 0)
    assert second.seconds == pytest.approx(family)
    assert list_ops(OPS, QUICK, ["cpu"], records, rounds=3).rows[0].seconds == pytest.approx(
        3 * first.seconds
    )
    (other,) = list_ops([one], QUICK, ["cpu"], [record(4.0, op="another.op")]).rows
    assert other.seconds == 4.0
    assert (
        list_ops([one], QUICK, ["cpu"], [Record(Case(NAME, "forward", "cpu", "float32", "n=1"))])
        .rows[0]
        .known
        == 0
    )
