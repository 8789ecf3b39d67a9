"""Published times as people and programs see them."""

import io
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from accel_micro.explain.published.data import Device, Published, Report, Row, read
from accel_micro.explain.published.findings import Findings, findings
from accel_micro.report import published as report
from accel_micro.report import published_words as words

SCREEN = 40


@pytest.fixture(scope="module")
def shipped() -> list[Findings]:
    return findings(read())


def text(found: list[Findings], width: int) -> str:
    stream = io.StringIO()
    report.render(found, stream=stream, width=width)
    return stream.getvalue()


@pytest.mark.parametrize("width", [80, 120])
def test_golden_terminal(shipped: list[Findings], width: int, golden: Callable[[str], Any]) -> None:
    assert golden("txt") == text(shipped, width)


def test_a_question_fits_a_screen(shipped: list[Findings]) -> None:
    for found in shipped:
        for section in report.sections(found, 80):
            assert len(section) <= SCREEN
            # A command is one line, so that it can be copied.
            assert all(len(line) <= 80 for line, _ in section if not line.startswith("→  accel-micro"))


def own(*seconds: float, batches: tuple[int, ...] = (4, 4, 64, 64), **changes: Any) -> list[Findings]:
    rows = tuple(
        Row(model="mine\x1b[2J", device="gpu", batch=b, seconds=s)
        for b, s in zip(batches, seconds, strict=True)
    )
    facts: dict[str, Any] = {
        "devices": {"gpu": Device(host="a", kind="accelerator")},
        "rows": rows,
        **changes,
    }
    made = Report(name="own", year=2026, claim="c", examples=1000, **facts)
    return findings(Published(schema=1, reports=(made,)))


def test_repeats_have_intervals_and_are_said() -> None:
    shown = text(own(10.0, 10.2, 4.0, 4.1), 120)
    assert "25.9 ms ± " in shown and "2 epochs each" in shown and "No interval" not in shown
    assert "no repeats" in text(own(10.0, 4.0, batches=(4, 64)), 120)


def test_text_out_of_files_moves_no_cursor() -> None:
    assert "\x1b" not in text(own(10.0, 10.2, 4.0, 4.1), 80)


def test_the_command_is_of_the_network_with_the_shortest_epoch(shipped: list[Findings]) -> None:
    assert "--model resnet18 --baseline onednn=off --batches 4,8,12,16,32,64" in report.confirming(shipped[0])


@pytest.mark.parametrize(("batches", "suits"), [((4, 64), True), ((4, 15), False), ((16, 64), False)])
def test_nnpack_is_named_only_across_its_threshold(batches: tuple[int, int], suits: bool) -> None:
    cpu = {"gpu": Device(host="a", kind="cpu")}
    (found,) = own(4.0, 10.0, batches=batches, devices=cpu)
    assert found.overheads[0].kind == "impossible"
    assert ("NNPACK" in " ".join(words.line_notes(found, ""))) is suits
    (on_gpu,) = own(4.0, 10.0, batches=batches)
    assert "NNPACK" not in " ".join(words.line_notes(on_gpu, ""))


def test_warmed_up_and_synchronised_times_are_called_so() -> None:
    shown = text(own(10.0, 4.0, batches=(4, 64), warmed_up=True, synchronised=True, loader_inside=False), 120)
    assert "warmed up" in shown and "no warm-up" not in shown and "first step" not in shown
    assert "the device was waited for" in shown and "the loader outside of the timer" in shown


def test_json_has_all_of_it(shipped: list[Findings]) -> None:
    data = json.loads(report.to_json(shipped))
    first, mnist, vae, *others = data["reports"]
    assert data["schema"] == 1 and len(others) == 3
    assert len(first["speedups"]) == len(first["overheads"]) == 10
    assert first["overheads"][0]["line"]["halves"] is None and first["overheads"][0]["kind"] == "impossible"
    assert mnist["speedups"][0]["steps"][1] is None  # nothing bounds it
    assert vae["report"]["losses"][0]["values"][-1] is None and vae["losses"][0]["ended"] == 5
    assert set(first["cannot_be_concluded"]) == {row["model"] for row in first["report"]["rows"]}


def test_the_page_has_these_figures(shipped: list[Findings]) -> None:
    text = (Path(__file__).parents[2] / "docs" / "oddities.md").read_text(encoding="utf-8")
    page = re.sub(r"\s+", " ", text)
    bounds = {(each.model, each.batch): each.steps for each in shipped[0].speedups}
    for key in (("vgg16", 4), ("resnet18", 4), ("mobilenet_v2", 4)):
        assert "{:.2f} to {:.2f}".format(*bounds[key]) in page, key
    assert "{:.1f} to {:.1f}".format(*bounds["mobilenet_v2", 64]) in page
    negative = [1e3 * each.line.per_step for each in shipped[0].overheads if each.kind == "impossible"]
    assert ", ".join(f"−{-b:.0f}" for b in negative[:-1]) + f" and −{-negative[-1]:.0f} ms a step" in page
    for row in shipped[0].report.rows:
        assert f"{row.seconds:.2f}" in page
