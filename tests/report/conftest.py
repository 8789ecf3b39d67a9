"""Golden files as plain files, one each, so that a change of a report reads as what people see; and a browser."""

import re
import shutil
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import settings
from syrupy.assertion import SnapshotAssertion
from syrupy.extensions.single_file import SingleFileSnapshotExtension, WriteMode

# The first example of a process imports scipy, and the machine may be busy: time says nothing here.
settings.register_profile("any time", deadline=None)
settings.load_profile("any time")


_ALL_DIGITS = re.compile(r"-?\d+\.\d{9,}(?:e[-+]?\d+)?")


def rounded(text: str) -> str:
    """With numbers of no more than nine digits: scipy's later ones differ from version to version."""
    return _ALL_DIGITS.sub(lambda number: f"{float(number[0]):.9g}", text)


@pytest.fixture
def golden(snapshot: SnapshotAssertion) -> Callable[[str], SnapshotAssertion]:
    """`golden("md") == text` compares with the test's file; `pytest --snapshot-update` rewrites it."""

    def with_ending(ending: str) -> SnapshotAssertion:
        class Extension(SingleFileSnapshotExtension):
            _write_mode = WriteMode.TEXT
            file_extension = ending

            def serialize(self, data: Any, **options: Any) -> Any:
                return super().serialize(rounded(data), **options)

        return snapshot.use_extension(Extension)

    return with_ending


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Chromium, for a module of tests."""
    sync_api = pytest.importorskip("playwright.sync_api")
    found = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if found is None:
        pytest.skip("no chromium on this machine")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        yield browser
        browser.close()
