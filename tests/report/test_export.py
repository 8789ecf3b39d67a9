"""Exports: golden, readable again without loss, and strict where other programs are."""

import csv
import io
import json
import math
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from syrupy.assertion import SnapshotAssertion

from accel_micro.measure.records import Case, Check, Failure, Record, Work
from accel_micro.report.export import CSV_COLUMNS, SCHEMA, records_from_json, row_to_json, to_csv, to_json
from accel_micro.report.markdown import to_markdown
from accel_micro.report.rows import collect
from accel_micro.report.words import clean
from tests.report.fixtures import FACTS, FINDINGS, cpu_records, h100_records

Golden = Callable[[str], SnapshotAssertion]


def exported(records: list[Record]) -> str:
    return to_json(collect(records), records, facts=FACTS, findings=FINDINGS, profile="standard")


def test_golden_json(golden: Golden) -> None:
    records = [record for record in h100_records() if record.case.shape in ("n=1024", "m=4096 n=4096", "n=8")]
    data = json.loads(exported(records))
    # The records are checked by their round trip; twenty samples a line would bury the rows.
    data["records"] = f"{len(data['records'])} records"
    assert data.pop("made_by").startswith("accel_micro ")
    assert golden("json") == json.dumps(data, indent=1, ensure_ascii=False) + "\n"


@pytest.mark.parametrize("records", [cpu_records, h100_records], ids=["cpu", "h100"])
def test_golden_csv(records: Callable[[], list[Record]], golden: Golden) -> None:
    assert golden("csv") == to_csv(collect(records()))


@pytest.mark.parametrize("records", [cpu_records, h100_records], ids=["cpu", "h100"])
def test_golden_markdown(records: Callable[[], list[Record]], golden: Golden) -> None:
    assert golden("md") == to_markdown(collect(records()))


@pytest.mark.parametrize("records", [cpu_records, h100_records])
def test_json_reads_back_as_the_same_records_and_rows(records: Callable[[], list[Record]]) -> None:
    before = records()
    after = records_from_json(exported(before))
    assert after == before
    assert collect(after) == collect(before)


def test_json_is_strict_and_a_result_of_nan_survives_it() -> None:
    record = replace(cpu_records()[0], check=Check(math.nan, 1e-5, math.inf), work=Work(1.0, math.inf))
    text = exported([record])

    def refuse(constant: str) -> float:
        raise AssertionError(f"{constant} is no JSON")

    json.loads(text, parse_constant=refuse)
    (back,) = records_from_json(text)
    assert back.check is not None
    assert math.isnan(back.check.error)


def test_json_rows_hold_what_the_table_shows() -> None:
    row = collect(h100_records()).rows[0]
    data = row_to_json(row)
    assert data["estimates"]["device"]["seconds"] == row.estimates["device"].seconds
    assert data["bound"] == "launch-bound"
    assert data["flags"][0]["remedy"]
    assert json.loads(json.dumps(data))["share_of_peak"] == row.rate.share_of_peak if row.rate else False


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '{"schema": 99, "records": []}',
        '{"schema": 1}',
        '{"schema": 1, "records": [{}]}',
        "null",
    ],
)
def test_what_is_no_export_is_refused_with_a_sentence(text: str) -> None:
    assert SCHEMA == 1
    with pytest.raises(ValueError, match=r"not a report|Expecting value"):
        records_from_json(text)


def test_csv_has_a_line_a_case_whatever_became_of_it() -> None:
    report = collect(h100_records())
    lines = list(csv.DictReader(io.StringIO(to_csv(report))))
    assert len(lines) == len({record.case for record in h100_records()})
    by_case = {
        (line["op"], line["dtype"], line["shape"], line["direction"], line["device"]): line for line in lines
    }
    small = by_case["matmul.mm", "float32", "m=64 k=64 n=64", "forward", "cuda"]
    assert float(small["seconds"]) == report.rows[0].estimates["throughput"].seconds
    assert float(small["device_seconds_high"]) == report.rows[0].estimates["device"].high
    assert float(small["flops_per_second"]) == pytest.approx(float(small["flops"]) / float(small["seconds"]))
    failed = by_case["linalg.svd", "float32", "m=4096 n=4096", "forward", "cuda"]
    assert (failed["seconds"], failed["failure"], failed["skipped"]) == ("", "timed out", "")
    skipped = by_case["pooling.max", "float64", "n=8", "forward", "cuda"]
    assert skipped["skipped"] == "profile standard does not run float64 on cuda"


def test_every_number_of_the_csv_names_its_unit() -> None:
    dimensionless = {"confidence", "processes", "samples", "spread", "share_of_peak", "dispatch_over_device"}
    dimensionless |= {"relative_error", "relative_tolerance", "cold_over_hot", "cold_input_sets"}
    units = (
        "seconds",
        "seconds_low",
        "seconds_high",
        "flops",
        "bytes",
        "flops_per_second",
        "bytes_per_second",
    )
    for line in csv.DictReader(io.StringIO(to_csv(collect(cpu_records())))):
        for name, value in line.items():
            try:
                float(value)
            except ValueError:
                continue
            assert name in dimensionless or name.endswith(units) or name == "build", name


hostile = st.text(st.characters(codec="utf-8"), max_size=30)


@settings(max_examples=50)
@given(op=hostile, shape=hostile, detail=hostile)
def test_any_text_survives_csv_and_json(op: str, shape: str, detail: str) -> None:
    case = Case(op, "forward", "cpu", "float32", shape)
    records = [
        Record(case, failure=Failure("failed", detail)),
        replace(cpu_records()[0], case=replace(case, dtype="x")),
    ]
    assert records_from_json(exported(records)) == records
    text = to_csv(collect(records))
    rows = list(csv.reader(io.StringIO(text, newline="")))
    assert {len(row) for row in rows} == {len(CSV_COLUMNS)}
    assert {row[0] for row in rows[1:]} == {clean(op)}
    assert text.count("\n") == len(text.splitlines()) == 1 + len(records)


@settings(max_examples=50)
@given(op=hostile, shape=hostile, detail=hostile)
def test_any_text_leaves_markdown_tables_whole(op: str, shape: str, detail: str) -> None:
    case = Case(op, "forward", "cpu", "float32", shape)
    records = [
        Record(case, failure=Failure("failed", detail)),
        replace(cpu_records()[0], case=replace(case, dtype="x")),
    ]
    lines = to_markdown(collect(records)).split("\n")
    table = [line for line in lines if line.startswith("| ")]
    assert len(table) == 3
    assert len({line.replace("\\|", "").count("|") for line in table}) == 1
    assert not any("<script" in line for line in lines)


def test_markdown_cannot_be_broken_by_names() -> None:
    first = cpu_records()[0]
    hostile_case = replace(first.case, op="matmul.<script>|`*", shape="[x](y) n=1\n| a |")
    text = to_markdown(collect([replace(first, case=hostile_case)]))
    assert "&lt;script>\\|\\`\\*" in text
    assert "\\[x\\](y) n=1 \\| a \\|" in text
