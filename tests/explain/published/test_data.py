"""Files of published times: what is shipped is read, what is none is refused in one sentence."""

import math
from pathlib import Path

import pytest

from accel_micro.explain.published.data import MOST_BYTES, SHIPPED, NotPublished, read

WHOLE = """
schema = 1
[[reports]]
name = "mine"
year = 2026
claim = "b"
examples = 100
rows = [{ model = "net", device = "cpu", batch = 4, seconds = 2.0 }]
[reports.devices]
cpu = { host = "here", kind = "cpu" }
"""


def test_what_is_shipped() -> None:
    published = read()
    first = published.reports[0]
    assert (first.steps(4), first.steps(64)) == (250, 16)
    assert {(row.model, row.device, row.batch) for row in first.rows} == {
        (model, device, batch) for model in published.models for device in ("cpu", "mps") for batch in (4, 64)
    }
    assert all(report.checks and report.confounders for report in published.reports)
    (losses,) = [each for report in published.reports for each in report.losses]
    assert math.isnan(losses.values[-1])


def test_it_is_a_file_of_the_package() -> None:
    import accel_micro

    assert SHIPPED.is_relative_to(Path(accel_micro.__file__).parent)


def test_a_file_of_ones_own(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(WHOLE)
    (report,) = read(path).reports
    assert report.rows[0].seconds == 2.0 and report.steps(3) == 34 and not report.warmed_up


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("[[reports]]", "[[reports", "is no TOML, or torn"),
        ("schema = 1", "schema = 2", "of a later version of accel_micro (schema 2)"),
        ("schema = 1", "", "missing required field `schema`"),
        ("year = 2026", 'year = "long ago"', "Expected `int`"),
        ("year = 2026", "year = 2026\nwarm_up = true", "unknown field `warm_up`"),
        ("seconds = 2.0", "seconds = -2.0", "in 'mine' net at batch 4 takes -2 s"),
        ("seconds = 2.0", "seconds = nan", "net at batch 4 takes nan s"),
        ("batch = 4", "batch = 0", "at batch 0"),
        ('device = "cpu"', 'device = "gpu"', "the device 'gpu', which `devices` does not have"),
        ("examples = 100", "", "does not say of how many"),
        ("examples = 100", "examples = 100\nmost_examples = 99", "`most_examples` is less"),
        ("examples = 100", "examples = 100\nrepeats = 0", "`repeats` is 0"),
        ('kind = "cpu"', 'kind = "cpu", bytes_per_second = 0.0', "cpu moves 0 bytes/s"),
    ],
)
def test_what_is_none_is_refused_in_a_sentence(tmp_path: Path, old: str, new: str, sentence: str) -> None:
    path = tmp_path / "mine.toml"
    assert old in WHOLE
    path.write_text(WHOLE.replace(old, new, 1))
    with pytest.raises(NotPublished) as raised:
        read(path)
    assert sentence in str(raised.value) and str(path) in str(raised.value)
    assert "\n" not in str(raised.value)


def test_every_torn_file_is_refused_or_read(tmp_path: Path) -> None:
    path = tmp_path / "torn.toml"
    for length in range(0, len(WHOLE), 7):
        path.write_text(WHOLE[:length])
        try:
            assert not read(path).reports[0].rows
        except NotPublished as problem:
            assert str(path) in str(problem)


def test_bytes_and_giants_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(NotPublished, match="torn"):
        read(path)
    path.write_bytes(b"#" * (MOST_BYTES + 1))
    with pytest.raises(NotPublished, match="larger than 1 MB"):
        read(path)
