from pathlib import Path

import pytest

from accel_micro.builds import web as module
from accel_micro.builds.web import Absent, NoParts, TooLarge, Unreachable, Web, without_password
from tests.builds.index_server import Index, serving

CONTENT = bytes(range(256)) * 40


def test_trouble_that_passes_is_waited_for(index: Index, web: Web) -> None:
    url = index.page("/torch/", "<html>", failures=[500, 503])
    assert web.page(url).body == b"<html>"
    assert index.asked["/torch/"] == 3


def test_trouble_that_stays_is_said(index: Index, web: Web) -> None:
    url = index.page("/torch/", "<html>", failures=[503] * 9)
    with pytest.raises(Unreachable, match=r"torch/ answers HTTP 503"):
        web.page(url)
    assert index.asked["/torch/"] == 3


def test_an_answer_that_breaks_off_is_asked_for_again(index: Index, web: Web) -> None:
    url = index.page("/torch/", CONTENT, cut_bytes=10)
    assert web.page(url).body == CONTENT


@pytest.mark.parametrize("status", [403, 404, 410])
def test_what_is_not_there(index: Index, web: Web, status: int) -> None:
    url = index.page("/torch/", "no", status=status)
    with pytest.raises(Absent, match=rf"is not there \(HTTP {status}\)"):
        web.page(url)
    assert index.asked["/torch/"] == 1, "asking again would not help"


def test_nobody_answers(web: Web) -> None:
    with serving() as index:
        url = index.url + "/torch/"
    with pytest.raises(Unreachable, match=r"127\.0\.0\.1 cannot be reached \(.*refused\); is the network up"):
        web.page(url)


@pytest.mark.parametrize("url", ["http://[bad/", "ftp://a/b/", "http:///", "http://a\x00b/", "http://*/"])
def test_addresses_that_are_none(web: Web, url: str) -> None:
    with pytest.raises(Unreachable, match="cannot be reached"):
        web.page(url)


def test_a_page_without_end(index: Index, web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LARGEST_PAGE_BYTES", 1000)
    with pytest.raises(TooLarge, match="larger than 1,000 bytes"):
        web.page(index.page("/torch/", CONTENT))


def test_parts(index: Index, web: Web) -> None:
    url = index.file("/a+b.whl", CONTENT)
    part = web.part(url, 100, 50)
    assert (part.start, part.data, part.total_bytes) == (100, CONTENT[100:150], len(CONTENT))
    tail = web.part(url, -30, 30)
    assert (tail.start, tail.data) == (len(CONTENT) - 30, CONTENT[-30:])
    assert web.size_bytes(url) == len(CONTENT)


def test_a_server_that_gives_whole_files_only(index: Index, web: Web) -> None:
    url = index.file("/w.whl", CONTENT, ranges=False)
    with pytest.raises(NoParts, match=r"gives files only as a whole \(no range requests\)"):
        web.part(url, 0, 5)
    assert web.size_bytes(url) == len(CONTENT)


@pytest.mark.parametrize("ranges", [True, False])
def test_a_download_goes_on_where_it_stopped(index: Index, web: Web, tmp_path: Path, ranges: bool) -> None:
    url, path = index.file("/w.whl", CONTENT, ranges=ranges), tmp_path / "w"
    path.write_bytes(CONTENT[:1000])
    progress: list[int] = []
    web.download(url, path, progress.append)
    assert path.read_bytes() == CONTENT
    assert index.sent_bytes["/w.whl"] == len(CONTENT) - (1000 if ranges else 0)
    assert progress[-1] == len(CONTENT)
    assert progress == sorted(progress)
    web.download(url, path)
    assert path.read_bytes() == CONTENT, "all was there"


def test_a_download_that_breaks_off_goes_on(
    index: Index, web: Web, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_PIECE_BYTES", 1000)
    url, path = index.file("/w.whl", CONTENT, cut_bytes=3000), tmp_path / "w"
    web.download(url, path)
    assert path.read_bytes() == CONTENT
    assert index.requests[-1][1] == "bytes=3000-"


def test_more_bytes_than_the_file_has_are_thrown_away(index: Index, web: Web, tmp_path: Path) -> None:
    url, path = index.file("/w.whl", CONTENT), tmp_path / "w"
    path.write_bytes(CONTENT + b"of another file")
    web.download(url, path)
    assert path.read_bytes() == CONTENT


def test_what_came_of_a_download_that_fails_stays(index: Index, web: Web, tmp_path: Path) -> None:
    url, path = index.file("/w.whl", CONTENT, failures=[503] * 9), tmp_path / "w"
    path.write_bytes(CONTENT[:1000])
    with pytest.raises(Unreachable):
        web.download(url, path)
    assert path.read_bytes() == CONTENT[:1000]


def test_passwords_stay_out_of_messages(web: Web) -> None:
    assert without_password("https://me:secret@a.b/c?d#e") == "https://a.b/c?d#e"
    assert without_password("https://a.b/c@d") == "https://a.b/c@d"
    with pytest.raises(Unreachable) as caught:
        web.page("http://me:secret@127.0.0.1:1/")
    assert "secret" not in str(caught.value)


def test_a_redirect_is_followed_and_links_are_relative_to_its_end(index: Index, web: Web) -> None:
    index.page("/new/", "<html>")
    url = index.page("/old/", "", status=301, headers={"Location": "/new/"})
    assert web.page(url).url == index.url + "/new/"


def test_a_wish_for_hours_of_pause_is_not_granted() -> None:
    from urllib3 import HTTPResponse

    retry = module._Patient()
    assert retry.get_retry_after(HTTPResponse(headers={"Retry-After": "86400"})) == 30
