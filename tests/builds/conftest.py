"""An index on the loopback address, and connections that lose no time with pauses."""

from collections.abc import Iterator

import pytest

from accel_micro.builds.web import Web
from tests.builds.index_server import Index, serving


@pytest.fixture
def index() -> Iterator[Index]:
    with serving() as served:
        yield served


@pytest.fixture
def web() -> Iterator[Web]:
    with Web(attempts=3, pause_seconds=0.0) as connections:
        yield connections
