"""Steps watched by torch's profiler and under a mode: whose time is whose."""

from collections.abc import Callable

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from accel_micro.explain.capturing import watching
from accel_micro.explain.capturing.recording import record
from accel_micro.explain.capturing.watching import (
    Bracketed,
    Events,
    Profiled,
    aligned,
    event_seconds,
    looked_at,
    name_of,
    profiled,
)

NAMES = st.lists(st.sampled_from(["mm", "add", "add_", "detach", "view"]), max_size=40)


@given(NAMES, st.data())
def test_calls_are_found_among_calls_within_calls(wanted: list[str], data: st.DataObject) -> None:
    seen: list[str] = []
    for name in wanted:
        seen += [*data.draw(st.lists(st.just("empty"), max_size=3)), name]
    places = aligned(wanted, seen)
    assert [seen[place] for place in places] == wanted
    assert places == sorted(set(places))


@given(NAMES, NAMES)
def test_what_is_aligned_is_in_order_and_of_that_name(wanted: list[str], seen: list[str]) -> None:
    places = aligned(wanted, seen)
    found = [place for place in places if place >= 0]
    assert len(places) == len(wanted) and found == sorted(set(found))
    for name, place in zip(wanted, places, strict=True):
        assert place < 0 or seen[place].rstrip("_") == name.rstrip("_")


def test_the_call_of_a_layer_is_not_taken_for_that_of_the_next() -> None:
    layer = ["t", "transpose", "addmm", *["empty"] * 30, "relu", "clamp", *["copy_"] * 30]
    seen = layer * 40
    wanted = ["t", "detach", "addmm", "add", "relu"] * 40  # neither detach nor add is called in a plain step
    places = aligned(wanted, seen)
    assert [places[n] for n in range(0, 200, 5)] == list(range(0, len(seen), len(layer)))
    assert all(places[n] == -1 for n in range(1, 200, 5)) and all(places[n] >= 0 for n in range(4, 200, 5))


def step_of(net: torch.nn.Module) -> Callable[[], None]:
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)
    x = torch.randn(4, 8)

    def step() -> None:
        optimizer.zero_grad()
        net(x).sum().backward()
        optimizer.step()

    return step


@pytest.fixture
def net() -> torch.nn.Module:
    return torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))


@pytest.mark.parametrize("kind", [Profiled, Bracketed])
def test_ops_and_gaps_fill_a_step(kind: "type[Profiled] | type[Bracketed]", net: torch.nn.Module) -> None:
    step = step_of(net)
    step()
    structure = record(step, net)
    watched = kind(structure)
    waited: list[None] = []
    watched.run(step, 3, lambda: waited.append(None))
    assert not watched.changed and len(watched.ops) == len(watched.gaps) == 3
    for ops, gaps in zip(watched.ops, watched.gaps, strict=True):
        assert len(ops) == len(structure.calls) and len(gaps) == len(ops) + 1
        assert min(ops) >= 0 and min(gaps) >= 0 and sum(ops) > 0
    products = [n for n, call in enumerate(structure.calls) if "mm" in str(call.func)]
    assert products and all(ops[n] > 0 for ops in watched.ops for n in products)


@pytest.mark.parametrize("groups", [1, 512])
def test_the_calls_inside_of_a_convolution_in_groups_do_not_hide_those_after_it(
    monkeypatch: pytest.MonkeyPatch, groups: int
) -> None:
    """Without oneDNN each group is a call of its own, of twenty calls within: 343 thousand in a step of a MobileNet."""
    layers: list[torch.nn.Module] = []
    for _ in range(4):
        layers += [torch.nn.Conv2d(512, 512, 3, 1, 1, groups=groups, bias=False)]
        layers += [torch.nn.BatchNorm2d(512), torch.nn.Tanh()]
    net = torch.nn.Sequential(*layers, torch.nn.Sigmoid())
    x = torch.randn(2, 512, 3, 3)

    def step() -> None:
        net(x).sum().backward()

    monkeypatch.setattr(torch.backends.mkldnn, "enabled", False)
    step()
    structure = record(step, net)
    watched = Profiled(structure)
    watched.run(step, 2, lambda: None)
    assert not watched.changed and len(watched.ops) == 2
    for name in ("convolution", "tanh", "sigmoid", "convolution_backward", "sigmoid_backward"):
        rows = [n for n, call in enumerate(structure.calls) if str(call.func).split(".")[1] == name]
        assert rows and all(ops[n] > 0 for ops in watched.ops for n in rows), name


@given(st.lists(st.sampled_from(["add", "empty", "conv"]), max_size=6), st.integers(0, 200))
def test_what_a_call_is_made_of_is_left_out_where_it_is_much(names: list[str], inside: int) -> None:
    """A call of `conv` that ends last, with others in it and before it."""
    seen = [*names, *["add"] * inside, "conv"]
    starts = [float(n) for n in range(len(seen) - 1)] + [len(names) - 0.5]
    ends = [start + 0.4 for start in starts[:-1]] + [float(len(seen))]
    places = looked_at(Events(-1.0, 1e3, seen, starts, ends), ["add", "conv_"])
    wanted = [place for place, name in enumerate(names) if name != "empty"]
    within = range(len(names), len(names) + inside) if inside <= watching._MOST_INSIDE else range(0)
    assert places == [*wanted, *within, len(seen) - 1]


@pytest.mark.parametrize("kind", [Profiled, Bracketed])
def test_a_step_of_other_ops_is_noticed(
    kind: "type[Profiled] | type[Bracketed]", net: torch.nn.Module
) -> None:
    step = step_of(net)
    structure = record(step, net)
    watched = kind(structure)
    watched.run(lambda: torch.ones(3).cumsum(0), 2, lambda: None)
    assert watched.changed and not watched.ops


def test_the_time_of_each_row_and_of_what_lies_between(
    monkeypatch: pytest.MonkeyPatch, net: torch.nn.Module
) -> None:
    names = ["aten::copy_", "aten::addmm", "aten::linear", "aten::clone", "aten::relu_"]
    starts, ends = [12.5, 12.0, 11.0, 16.5, 16.0], [13.0, 14.0, 15.0, 17.0, 18.0]
    monkeypatch.setattr(watching, "profiled", lambda step, steps: [Events(10.0, 20.0, names, starts, ends)])
    x = torch.randn(4, 8)
    weight, bias = torch.randn(8, 8), torch.randn(8)

    def step() -> None:
        product = torch.addmm(bias, x, weight)
        product.clone()
        product.relu_()

    watched = Profiled(record(step, net))
    watched.run(step, 1, lambda: None)
    # The copy is within the product; the clone is made by the relu, whose own time begins behind it.
    assert watched.ops == [[2.0, 0.5, 1.0]] and watched.gaps == [[2.0, 2.5, 0.0, 2.0]]
    assert watched.events == ([1.0, 0.0, 0.0], [2.0, 2.0, 0.0, 0.0])


def test_the_profiler_tells_steps_apart_and_adds_little() -> None:
    found = profiled(lambda: torch.ones(3).cumsum(0), 3)
    assert len(found) == 3
    for events in found:
        assert "aten::cumsum" in events.names
        assert events.start <= min(events.starts) and max(events.ends) <= events.end
    assert name_of(torch.ops.aten.add_.Tensor) == "aten::add_"
    assert 0 <= event_seconds() < 1e-3
