from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from accel_micro.builds.wheels import (
    DEFAULT_VARIANT,
    ChangedFile,
    NotAWheel,
    Place,
    Target,
    Wheel,
    changed,
    choose_wheel,
    completed,
    merged,
    named,
    running_python,
)

LINUX = Target(
    "3.11",
    ("cp311-cp311-manylinux_2_28_x86_64", "cp311-cp311-linux_x86_64", "cp310-abi3-linux_x86_64"),
    ("cu132", "cu130"),
)
PLACES = st.builds(
    Place, st.sampled_from(["https://a/w.whl", "https://b/w.whl"]), st.sampled_from(["i", "j"]), st.booleans()
)


def wheel(
    version: str = "2.14.0+cu130", tag: str = "cp311-cp311-manylinux_2_28_x86_64", **facts: object
) -> Wheel:
    name = f"torch-{version}-{tag}.whl"
    _, variant, _ = named(name)
    return Wheel("0" * 40, version, name, **{"variant": variant, **facts})  # type: ignore[arg-type]


def optional(*values: object) -> st.SearchStrategy[object]:
    return st.sampled_from([None, *values])


def records(*, of_one_file: bool) -> st.SearchStrategy[Wheel]:
    other = () if of_one_file else ("b" * 64,)
    return st.builds(
        lambda places, **facts: wheel(places=tuple({p.key: p for p in places}.values()), **facts),
        st.lists(PLACES, max_size=3),
        size_bytes=optional(7),
        sha256=optional("a" * 64, *other),
        git_version=optional("c" * 40),
        uploaded_milliseconds=optional(3),
        first_seen_milliseconds=st.integers(0, 5),
        changed_milliseconds=st.integers(0, 5),
        broken=optional("cut off"),
        replaced=st.integers(0, 0 if of_one_file else 1),
    )


def facts_of(record: Wheel) -> Wheel:
    return replace(record, places=tuple(sorted(record.places, key=repr)))


@given(records(of_one_file=False), records(of_one_file=False))
def test_two_records_tell_the_same_in_any_order(one: Wheel, other: Wheel) -> None:
    assert merged(one, other) == merged(other, one)
    assert merged(one, one) == one


@given(records(of_one_file=True), records(of_one_file=True))
def test_merging_loses_nothing(one: Wheel, other: Wheel) -> None:
    both = merged(one, other)
    for name in ("size_bytes", "sha256", "git_version", "uploaded_milliseconds"):
        assert getattr(both, name) == (getattr(one, name) or getattr(other, name))
    assert {p.key for p in both.places} == {p.key for p in (*one.places, *other.places)}
    newest = max(one.changed_milliseconds, other.changed_milliseconds)
    assert both.broken in {w.broken for w in (one, other) if w.changed_milliseconds == newest}
    assert facts_of(merged(both, one)).git_version == facts_of(both).git_version


def test_of_two_files_the_one_accepted_last_counts_else_the_one_seen_first() -> None:
    first = wheel(sha256="a" * 64, first_seen_milliseconds=1)
    second = wheel(sha256="0" * 64, first_seen_milliseconds=2)
    assert merged(second, first) == first
    assert merged(first, replace(second, replaced=1)) == replace(second, replaced=1)


def test_what_was_known_is_completed_and_the_same_again_tells_nothing() -> None:
    known = completed(None, wheel(places=(Place("https://a/w.whl", "i"),)), 5)
    assert (known.first_seen_milliseconds, known.changed_milliseconds) == (5, 5)
    assert completed(known, wheel(places=(Place("https://a/w.whl", "i"),)), 9) == known
    more = completed(known, wheel(places=(Place("https://b/w.whl", "j"),), sha256="a" * 64), 9)
    assert [place.url for place in more.places] == ["https://b/w.whl", "https://a/w.whl"]
    assert (more.sha256, more.changed_milliseconds) == ("a" * 64, 9)
    hidden = completed(more, wheel(places=(Place("https://b/w.whl", "j", listed=False),)), 1)
    assert hidden.changed_milliseconds == 10, "a clock that was set back does not undo it"
    assert hidden.urls == ["https://a/w.whl", "https://b/w.whl"], "what is listed is tried first"


@pytest.mark.parametrize(
    ("name", "before", "now"),
    [
        ("sha256", "a" * 64, "b" * 64),
        ("size_bytes", 1, 2),
        ("metadata_sha256", "a" * 64, "b" * 64),
        ("git_version", "a" * 40, "b" * 40),
    ],
)
def test_a_changed_file_is_an_error_that_says_so(name: str, before: object, now: object) -> None:
    known, seen = wheel(**{name: before}), wheel(**{name: now})
    with pytest.raises(ChangedFile, match=rf"not the file it was: its {name} was {before} and is now {now}"):
        completed(known, seen, 0)
    assert changed(known, wheel()) is None


@given(st.text())
def test_no_name_leads_out_of_a_folder(text: str) -> None:
    assume(text)
    for name in (text, f"torch-2.14.0-{text}.whl", f"{text}torch-2.14.0-cp311-cp311-linux_x86_64.whl"):
        try:
            named(name)
        except NotAWheel:
            continue
        assert Path("/folder", name).resolve().parent == Path("/folder")


@pytest.mark.parametrize(
    "name",
    [
        "../torch-2.14.0-cp311-cp311-linux_x86_64.whl",
        "..\\torch-2.14.0-cp311-cp311-linux_x86_64.whl",
        "/etc/torch-2.14.0-cp311-cp311-linux_x86_64.whl",
        "torch-2.14.0-cp311-cp311-..%2Flinux.whl",
        "torch-2.14.0-cp311-cp311-linux_x86_64.whl\n",
        "torch-2.14.0-cp311-cp311-linux_x86_64.whl\x00.txt",
        "torchvision-2.14.0-cp311-cp311-linux_x86_64.whl",
        "torch-" + "9" * 300 + "-cp311-cp311-linux_x86_64.whl",
        "torch-one-cp311-cp311-linux_x86_64.whl",
        "torch.whl",
        "",
    ],
)
def test_names_that_no_wheel_of_torch_has(name: str) -> None:
    with pytest.raises(NotAWheel):
        named(name)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (
            "torch-2.7.0.dev20250123+cpu-cp39-cp39-manylinux_2_28_x86_64.whl",
            ("2.7.0.dev20250123+cpu", "cpu", False),
        ),
        ("torch-2.14.0+cu130-cp311-cp311-linux_x86_64.whl", ("2.14.0+cu130", "cu130", False)),
        ("torch-2.5.0+cpu.cxx11.abi-cp311-cp311-linux_x86_64.whl", ("2.5.0+cpu.cxx11.abi", "cpu", False)),
        ("torch-2.8.0+rocm6.4-cp311-cp311-linux_x86_64.whl", ("2.8.0+rocm6.4", "rocm6.4", False)),
        ("torch-2.14.0-cp310-none-macosx_11_0_arm64.whl", ("2.14.0", DEFAULT_VARIANT, True)),
    ],
)
def test_what_a_name_tells(name: str, expected: tuple[str, str, bool]) -> None:
    assert named(name) == expected


def test_variant_first_then_tag_then_build_number() -> None:
    best = wheel("2.14.0+cu132", "cp311-cp311-linux_x86_64")
    worse_variant = wheel("2.14.0+cu130", "cp311-cp311-manylinux_2_28_x86_64")
    unsaid = wheel("2.14.0", "cp311-cp311-manylinux_2_28_x86_64")
    foreign = [
        wheel("2.14.0+cu132", "cp312-cp312-linux_x86_64"),
        wheel("2.14.0+cu132", "cp311-cp311-win_amd64"),
        wheel("2.14.0+cpu", "cp311-cp311-linux_x86_64"),
    ]
    assert choose_wheel([*foreign, unsaid, worse_variant, best], LINUX) == best
    assert choose_wheel([*foreign, unsaid, worse_variant], LINUX) == worse_variant
    assert choose_wheel([*foreign, unsaid], LINUX) == unsaid
    assert choose_wheel(foreign, LINUX) is None
    numbered = [wheel("2.14.0+cu132", f"{n}-cp311-cp311-linux_x86_64") for n in (2, 10, 9)]
    assert choose_wheel([best, *numbered], LINUX) == numbered[1]
    several = wheel("2.14.0+cu132", "cp310.cp311-cp311-linux_x86_64.manylinux_2_28_x86_64")
    assert choose_wheel([best, several], LINUX) == several


def test_a_broken_wheel_is_chosen_only_where_no_other_suits() -> None:
    broken = wheel("2.14.0+cu132", broken="cut off")
    other = wheel("2.14.0+cu130", "cp310-abi3-linux_x86_64")
    assert choose_wheel([broken, other], LINUX) == other
    assert choose_wheel([broken], LINUX) == broken


def test_targets_are_told_by_interpreter_and_platform() -> None:
    here = Target.here()
    assert here.python == running_python()
    assert here == Target.here(python=running_python())
    threaded = Target.here(python="3.13t")
    assert threaded.python == "3.13t"
    assert threaded.tags[0].startswith("cp313-cp313t-")
    assert not any("-abi3-" in tag or "-cp313-" in tag for tag in threaded.tags)
    assert Target.here(python="3.12.4").tags[0].startswith("cp312-cp312-")
    with pytest.raises(ValueError, match="no Python version"):
        Target.here(python="three")


def test_files_that_are_here_are_tried_first(tmp_path: Path) -> None:
    here, gone = tmp_path / "here.whl", tmp_path / "gone.whl"
    here.touch()
    places = tuple(Place(url, "i") for url in (gone.as_uri(), "https://a/w.whl", here.as_uri()))
    assert wheel(places=places).urls == [here.as_uri(), "https://a/w.whl"]
