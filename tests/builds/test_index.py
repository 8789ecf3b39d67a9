import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pypi_simple import PYPI_SIMPLE_ENDPOINT

from accel_micro.builds import index as module
from accel_micro.builds.index import (
    DEFAULT_INDEXES,
    INDEXES_VARIABLE,
    VARIANT_VARIABLE,
    BadIndex,
    Listing,
    Settings,
    read_all,
    settings,
)
from accel_micro.builds.web import Page, Web
from tests.builds.fake_torch import write_wheel
from tests.builds.index_server import Index

TAG = "cp311-cp311-manylinux_2_28_x86_64"
NIGHTLY = f"torch-2.14.0.dev20261105+cu130-{TAG}.whl"
SHA = "a" * 64
JSON = "application/vnd.pypi.simple.v1+json"


def read(address: str | Path, web: Web, *variants: str) -> Listing:
    (listing,) = read_all([str(address)], variants or ("cpu",), web)
    return listing


def json_page(*files: dict[str, object]) -> str:
    return json.dumps({"meta": {"api-version": "1.1"}, "name": "torch", "versions": [], "files": files})


def test_html_as_pytorch_serves_it(index: Index, web: Web) -> None:
    attributes = f'data-core-metadata="sha256={SHA}" data-upload-time="2026-11-05 09:30:00+00:00"'
    root = index.links("/whl/nightly/cu130/", [NIGHTLY], "/whl/nightly/cu130/", attributes)
    listing = read(root, web)
    (link,) = listing.links
    assert listing.index == root + "torch/"
    assert link.file_name == NIGHTLY
    assert link.url == f"{index.url}/whl/nightly/cu130/{NIGHTLY.replace('+', '%2B')}"
    assert (link.version, link.variant) == ("2.14.0.dev20261105+cu130", "cu130")
    assert link.metadata_sha256 == SHA
    assert link.uploaded_milliseconds == 1793871000000
    assert (link.sha256, link.size_bytes) == (None, None)


def test_json_tells_sizes_and_hashes(index: Index, web: Web) -> None:
    file = {
        "filename": NIGHTLY,
        "url": f"../../files/{NIGHTLY}",
        "hashes": {"sha256": SHA},
        "size": 800_000_000,
        "upload-time": "2026-11-05T09:30:00.5Z",
    }
    index.page("/simple/torch/", json_page(file), JSON)
    (link,) = read(index.url + "/simple/", web).links
    assert (link.sha256, link.size_bytes, link.uploaded_milliseconds) == (SHA, 800_000_000, 1793871000500)
    assert link.url == f"{index.url}/files/{NIGHTLY.replace('+', '%2B')}"


def test_a_hash_in_the_link(index: Index, web: Web) -> None:
    index.page("/whl/torch/", f'<a href="/{NIGHTLY}#sha256={SHA}">{NIGHTLY}</a>')
    (link,) = read(index.url + "/whl", web).links
    assert link.sha256 == SHA
    assert "#" not in link.url


def test_a_page_for_each_variant_and_those_not_offered(index: Index, web: Web) -> None:
    for variant in ("cu130", "cu126"):
        index.links(f"/whl/{variant}/", [NIGHTLY.replace("cu130", variant)])
    listings = read_all([index.url + "/whl/{variant}/"], ["cu132", "cu130", "cu126"], web)
    assert [(len(listing.links), listing.absent) for listing in listings] == [
        (0, True),
        (1, False),
        (1, False),
    ]


def test_the_variant_of_an_old_name_is_that_of_its_folder(index: Index, web: Web) -> None:
    old, mac = f"torch-1.9.0-{TAG}.whl", "torch-2.14.0-cp311-none-macosx_11_0_arm64.whl"
    root = index.links("/whl/cu102/", [old], "/whl/cu102/")
    assert read(root, web).links[0].variant == "cu102"
    root = index.links("/whl/cu130/", [mac], "/whl/")
    assert read(root, web).links[0].variant == "cpu"
    root = index.links("/simple/", [old], "/packages/")
    assert read(root, web).links[0].variant == "default"


def test_a_folder_of_wheels(tmp_path: Path, web: Web) -> None:
    path = write_wheel(tmp_path / "torch", "2.14.0.dev20261105+cpu")
    other = write_wheel(tmp_path, "2.14.0.dev20261106+cpu")
    (tmp_path / "torchvision-1.0-py3-none-any.whl").touch()
    for address in (tmp_path, tmp_path.as_uri(), tmp_path.as_uri() + "/"):
        listing = read(address, web)
        assert {link.url for link in listing.links} == {path.as_uri(), other.as_uri()}
        assert {link.size_bytes for link in listing.links} == {path.stat().st_size}
        assert len(listing.problems) == 1


def test_an_index_of_files(tmp_path: Path, web: Web) -> None:
    path = write_wheel(tmp_path / "torch", "2.14.0.dev20261105+cpu")
    gone = NIGHTLY
    lines = [f'<a href="{name}#sha256={SHA}">{name}</a>' for name in (path.name, gone)]
    (tmp_path / "torch" / "index.html").write_text("".join(lines))
    listing = read(tmp_path, web)
    (link,) = listing.links
    assert (link.url, link.sha256, link.size_bytes) == (path.as_uri(), SHA, path.stat().st_size)
    assert "is not there, though an index lists it" in listing.problems[0]
    assert read(tmp_path / "torch", web).links == [link]


@pytest.mark.parametrize(
    ("body", "kind", "said"),
    [
        (
            "<html><h1>Sign in to the hotel",
            "text/html",
            "lists no wheel of torch; it begins with '<html>",
        ),
        ("", "text/html", "lists no wheel of torch"),
        ("\x00\xff\x1b[2J" * 50, "text/html", "lists no wheel of torch"),
        ("{]", JSON, r"is no index that can be read \(JSONDecodeError"),
        ("[]", JSON, "is no index that can be read"),
        (
            '{"meta": {"api-version": "9.0"}, "name": "torch", "files": []}',
            JSON,
            "is no index that can be read",
        ),
        ("[" * 100_000, JSON, "is no index that can be read"),
        ("<a href='x' " * 2000, "text/html", "lists no wheel of torch"),
        ("<a href=" * 2000, "text/html", "lists no wheel of torch"),
        ("<meta name='pypi:repository-version' content='9.0'>", "text/html", "is no index that can be read"),
        (f'<a href="http://[bad/{NIGHTLY}">{NIGHTLY}</a>', "text/html", "torch"),
    ],
)
def test_garbage_is_named(index: Index, web: Web, body: str, kind: str, said: str) -> None:
    index.page("/torch/", body.encode("latin-1"), kind)
    listing = read(index.url, web)
    assert listing.links == []
    assert listing.failure is not None
    assert re.search(said, listing.failure)


@given(st.binary(max_size=400), st.sampled_from(["text/html", JSON, "application/pdf", ""]))
def test_no_page_does_harm(body: bytes, kind: str) -> None:
    listing = module._listing("http://a/torch/", Page("http://a/torch/", kind, body))
    assert listing.failure is not None


@pytest.mark.parametrize(
    ("text", "href", "said"),
    [
        (f"../../{NIGHTLY}", f"/whl/{NIGHTLY}", "a link called '../../torch"),
        (NIGHTLY, "/whl/torch-9.9.9-cp311-cp311-linux_x86_64.whl", "leads to"),
        (f"..%2F..%2F{NIGHTLY}", f"/whl/..%2F..%2F{NIGHTLY}", "leads to"),
        ("get it", f"/whl/..%2F..%2F{NIGHTLY}", "no plain name of a wheel"),
        (NIGHTLY, f"file:///etc/{NIGHTLY}", "an index by http links to 'file:"),
        (NIGHTLY, f"javascript:alert(1)/{NIGHTLY}", "an index by http links to"),
        ("torch-" + "1" * 5000 + f"-{TAG}.whl", "x.whl", "wrong number of parts"),
        ("torch-1!!2-cp311-cp311-linux_x86_64.whl", "torch-1!!2-cp311-cp311-linux_x86_64.whl", "Invalid"),
        ("torch-2.0-cp311-cp311-lin\x1bux.whl", "torch-2.0-cp311-cp311-lin%1Bux.whl", "no plain name"),
    ],
)
def test_links_with_tricks_are_skipped_and_named(
    index: Index, web: Web, text: str, href: str, said: str
) -> None:
    good = f"torch-2.14.0-{TAG}.whl"
    index.page("/torch/", f'<a href="{href}">{text}</a><a href="{good}">{good}</a><a href="..">up</a>')
    listing = read(index.url, web)
    assert [link.file_name for link in listing.links] == [good]
    assert len(listing.problems) == 1
    assert said in listing.problems[0]


@pytest.mark.parametrize("size", [0, -5, 10**15])
def test_absurd_sizes_are_not_believed(index: Index, web: Web, size: int) -> None:
    file = {"filename": NIGHTLY, "url": NIGHTLY, "hashes": {"sha256": "short"}, "size": size}
    index.page("/torch/", json_page(file), JSON)
    listing = read(index.url, web)
    assert [(link.size_bytes, link.sha256) for link in listing.links] in ([(None, None)], [])
    assert listing.links or listing.failure


def test_one_index_that_is_down_costs_no_other(index: Index, web: Web, tmp_path: Path) -> None:
    root = index.links("/up/", [NIGHTLY])
    down, up, missing = read_all(["http://127.0.0.1:1/whl", root, str(tmp_path / "none")], ["cpu"], web)
    assert down.failure is not None
    assert not down.absent
    assert len(up.links) == 1
    assert missing.failure is not None
    assert missing.failure.endswith("none is no folder")


def test_passwords_stay_out_of_what_is_kept(index: Index, web: Web) -> None:
    index.links("/whl/", [NIGHTLY], base="")
    listing = read(index.url.replace("//", "//me:secret@") + "/whl/", web)
    assert len(listing.links) == 1
    assert "secret" not in repr(listing)


def test_addresses_that_are_none(web: Web) -> None:
    with pytest.raises(BadIndex, match=r"ftp://a is no index: give http://, https://, file:// or a folder"):
        read("ftp://a", web)


def test_settings_come_from_the_configuration_and_the_environment(tmp_path: Path) -> None:
    assert settings(None, {"PIP_INDEX_URL": "https://pip/"}, tmp_path) == Settings(
        DEFAULT_INDEXES, "auto", "https://pip/"
    )
    configured = {"indexes": ["wheels", "https://a/{variant}/"], "variant": "cpu"}
    assert settings(configured, {}, tmp_path) == Settings(
        (str(tmp_path / "wheels"), "https://a/{variant}/"), "cpu"
    )
    environ = {INDEXES_VARIABLE: "file:///one  https://two/", VARIANT_VARIABLE: "cu130"}
    assert settings(configured, environ, tmp_path) == Settings(("file:///one", "https://two/"), "cu130")
    assert settings({"indexes": "one"}, {}, tmp_path).indexes == (str(tmp_path / "one"),)


def test_only_who_chose_no_index_has_another_to_fall_back_to(tmp_path: Path) -> None:
    assert settings({"variant": "cpu"}, {}, tmp_path).otherwise == PYPI_SIMPLE_ENDPOINT
    assert settings({"indexes": "one"}, {}, tmp_path).otherwise is None
    assert settings(None, {INDEXES_VARIABLE: "https://two/"}, tmp_path).otherwise is None


@pytest.mark.parametrize(
    "configured",
    [[], "x", {"indexes": []}, {"indexes": [1]}, {"indexes": {}}, {"variant": ""}, {"variant": 3}],
)
def test_settings_that_are_none(configured: object, tmp_path: Path) -> None:
    with pytest.raises(BadIndex, match="in the configuration is to be"):
        settings(configured, {}, tmp_path)
