"""Which index releases are read from when PyTorch's own is out of reach."""

from collections.abc import Mapping

import pytest
from pypi_simple import PYPI_SIMPLE_ENDPOINT

from accel_micro.builds.package_index import package_index


@pytest.mark.parametrize(
    ("environ", "address"),
    [
        ({}, PYPI_SIMPLE_ENDPOINT),
        ({"PIP_INDEX_URL": "https://mirror/simple"}, "https://mirror/simple"),
        ({"PIP_INDEX_URL": "https://a/", "UV_INDEX_URL": "https://b/"}, "https://b/"),
        ({"UV_INDEX_URL": "https://b/", "UV_DEFAULT_INDEX": "https://c/"}, "https://c/"),
        ({"UV_DEFAULT_INDEX": "ours=https://c/?a=b"}, "https://c/?a=b"),
        ({"UV_DEFAULT_INDEX": "https://c/?a=https://d"}, "https://c/?a=https://d"),
        ({"UV_DEFAULT_INDEX": " ", "PIP_INDEX_URL": "file:///wheels"}, "file:///wheels"),
    ],
)
def test_it_is_the_one_that_uv_or_pip_is_told_else_the_public_one(
    environ: Mapping[str, str], address: str
) -> None:
    assert package_index(environ) == address
