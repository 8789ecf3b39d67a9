"""The door the command line uses: formats, streams that cannot write everything, and what is imported."""

import io
import json
import subprocess
import sys

import pytest

from accel_micro.report import FORMATS, render
from accel_micro.report.rows import collect
from tests.report.fixtures import cpu_records, h100_records


@pytest.mark.parametrize("format", FORMATS)
def test_every_format_writes_every_case(format: str) -> None:
    stream = io.StringIO()
    render(iter(h100_records()), format, stream, width=200)  # type: ignore[arg-type]
    text = stream.getvalue()
    assert text.endswith("\n")
    assert not stream.closed
    for row in collect(h100_records()).rows:
        words = row.case.shape.replace("_", r"\_") if format == "markdown" else row.case.shape
        assert all(word in text for word in words.split())


def test_an_unknown_format_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match="unknown format 'pdf'; known: table, json, markdown, csv"):
        render([], "pdf")  # type: ignore[arg-type]


@pytest.mark.parametrize("format", FORMATS)
def test_a_stream_of_ascii_loses_signs_and_not_the_report(format: str) -> None:
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding="ascii")
    render(cpu_records(), format, stream)  # type: ignore[arg-type]
    stream.flush()
    assert b"m=64" in raw.getvalue()


def test_json_carries_facts_findings_and_profile() -> None:
    stream = io.StringIO()
    render([], "json", stream, facts={"cpu": {"model": "x"}}, findings=[{"name": "y"}], profile="quick")
    data = json.loads(stream.getvalue())
    assert (data["facts"], data["findings"], data["profile"]) == (
        {"cpu": {"model": "x"}},
        [{"name": "y"}],
        "quick",
    )


def test_all_sessions_can_be_pooled() -> None:
    records = [*cpu_records(), *cpu_records()]
    stream = io.StringIO()
    render(records, "json", stream, sessions="all")
    rows = json.loads(stream.getvalue())["rows"]
    assert {row["estimates"]["throughput"]["processes"] for row in rows} == {2}


def test_importing_loads_nothing_heavy() -> None:
    code = (
        "import sys, accel_micro.report, accel_micro.report.progress, accel_micro.report.html\n"
        "print([m for m in ('torch', 'scipy', 'numpy', 'rich', 'jinja2') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "[]"
