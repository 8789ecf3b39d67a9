"""Runs and pages from Python, in a process of their own: asv and its plugin are global."""

import functools
import http.server
import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.asv_plugin.conftest import Suite, ended, press_ctrl_c, wait_for

pytestmark = pytest.mark.slow

OPS = """
@op(quick=["n=1", "n=2"], backward=False)
def good(t, n):
    pass


@op(quick=["n=1"], backward=False)
def worse(t, n):
    if n == 1:
        return "wrong result", "relative error 1"
"""

PROGRAM = """
import json, sys
from pathlib import Path
from accel_micro.asv_plugin import session

def told(event):
    print(json.dumps([type(event).__name__, event.index, event.total]), flush=True)

arguments = {k: Path(v) if k == "config" else v for k, v in json.loads(sys.argv[1]).items()}
try:
    outcome = session.run(listener=told, **arguments)
except session.SessionError as error:
    print(json.dumps(["error", error.exit_code, str(error)]))
    raise SystemExit
print(json.dumps({
    "records": [str(r.case) for r in outcome.records], "failures": [r.failure.kind for r in outcome.failures],
    "interrupted": outcome.interrupted, "results": str(outcome.results), "log": outcome.log.read_text(),
    "devices": [list(r["devices"]) for r in outcome.reports.values()],
}))
if arguments.get("save", True) and not outcome.interrupted:
    print(json.dumps(str(session.publish())))
"""


def start(suite: Suite, **arguments: object) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM, json.dumps({"devices": ["cpu"], "profile": "quick", **arguments})],
        cwd=suite.path,
        env=suite.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def lines(process: "subprocess.Popen[str]") -> list[Any]:
    return ended(process, 120).lines()


def test_a_run_is_quiet_tells_its_listener_and_returns_records(suite: Suite) -> None:
    suite.add("ops", OPS)
    *events, outcome, html = lines(start(suite, rounds=2))
    assert events == [
        ["CaseStarted", 1, 6],
        ["CaseFinished", 1, 6],
        ["CaseStarted", 2, 6],
        ["CaseFinished", 2, 6],
        ["CaseStarted", 3, 6],
        ["CaseFinished", 3, 6],
        ["CaseStarted", 4, 5],  # what failed is not tried again
        ["CaseFinished", 4, 5],
        ["CaseStarted", 5, 5],
        ["CaseFinished", 5, 5],
    ]
    assert isinstance(outcome, dict)
    assert len(outcome["records"]) == 5
    assert outcome["failures"] == ["wrong result"]
    assert not outcome["interrupted"]
    assert outcome["results"] == str(suite.results)
    assert "Discovering benchmarks" in outcome["log"]
    assert "cpu" in outcome["devices"][0]
    assert html == str(suite.path / "html")
    assert (suite.path / "html" / "index.json").exists()


def test_nothing_is_saved_on_request(suite: Suite) -> None:
    suite.add("ops", OPS)
    outcome = lines(start(suite, save=False, bench=["good"]))[-1]
    assert isinstance(outcome, dict)
    assert len(outcome["records"]) == 2
    assert not list(suite.results.glob("*/*-existing*"))


def test_ctrl_c_returns_what_was_measured(suite: Suite) -> None:
    suite.add(
        "ops",
        """
        @op(quick=["n=1", "n=2"], backward=False)
        def slow(t, n):
            if n == 2:
                time.sleep(100)
        """,
    )
    process = start(suite)
    wait_for(lambda: bool(list(suite.results.glob("*/*.processes.jsonl"))))
    press_ctrl_c(process)
    outcome = lines(process)[-1]
    assert isinstance(outcome, dict)
    assert outcome["interrupted"]
    assert len(outcome["records"]) == 1


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ({"profile": "fast"}, 2, "unknown profile 'fast'"),
        ({"bench": ["nothing"]}, 2, "no benchmark matches nothing; `accel-micro ops` lists the ops"),
        ({"bench": ["ops.wrose"]}, 2, "the nearest names are ops.worse;"),
        ({"bench": ["("]}, 2, "'(' is no regular expression"),
        ({"devices": ["xpu"]}, 3, "no case to run"),
        ({"config": "gone.json"}, 2, "gone.json is no file"),
    ],
)
def test_errors_say_whose_they_are(
    suite: Suite, arguments: dict[str, object], code: int, message: str
) -> None:
    suite.add("ops", OPS)
    (error,) = lines(start(suite, **arguments))
    assert isinstance(error, list)
    assert error[:2] == ["error", code]
    assert message in error[2]


def test_a_suite_that_cannot_be_imported_is_explained(suite: Suite) -> None:
    suite.add("ops", "raise RuntimeError('broken on purpose')\n")
    (error,) = lines(start(suite))
    assert isinstance(error, list)
    assert "broken on purpose" in error[2]


@pytest.fixture
def pages(suite: Suite) -> Iterator[tuple[str, str]]:
    suite.add("ops", OPS)
    lines(start(suite))
    handler = functools.partial(Quiet, directory=str(suite.path / "html"))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/", (suite.path / "html" / "index.html").as_uri()
    server.shutdown()
    thread.join()
    server.server_close()


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


def test_the_page_works_without_internet(pages: tuple[str, str]) -> None:
    served, opened = pages
    playwright = pytest.importorskip("playwright.sync_api")
    chromium = Path("/usr/bin/chromium")
    if not chromium.exists():
        pytest.skip("no chromium")
    with playwright.sync_playwright() as p:
        browser = p.chromium.launch(executable_path=str(chromium), args=["--no-sandbox"])
        page = browser.new_page()
        elsewhere: list[str] = []
        problems: list[str] = []
        page.on("request", lambda r: None if r.url.startswith((served, "data:")) else elsewhere.append(r.url))
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.goto(served)
        page.wait_for_selector("text=good")
        page.goto(served + "builds.html")
        page.wait_for_selector("text=release")
        alone = browser.new_page()
        alone.goto(opened)
        alone.wait_for_selector("text=this page needs a server")
        browser.close()
    assert elsewhere == []
    assert problems == []
