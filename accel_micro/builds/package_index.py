"""The index that pip and uv install from: where releases are to be had when PyTorch's own index is out of reach."""

import re
from collections.abc import Mapping
from typing import Final

VARIABLES: Final = ("UV_DEFAULT_INDEX", "UV_INDEX_URL", "PIP_INDEX_URL")
"""Which name it, the first that is set; else it is the public one. uv's come first, since uv installs builds."""


def package_index(environ: Mapping[str, str]) -> str:
    """Its address. Wheels there tell no variant: on Linux they are for CUDA, and run on the CPU too."""
    from pypi_simple import PYPI_SIMPLE_ENDPOINT

    named = next((text for name in VARIABLES if (text := environ.get(name, "").strip())), "")
    # uv lets an index have a name before its address.
    return re.sub(r"^[A-Za-z0-9_.-]+=(?=[a-z]+://)", "", named) or PYPI_SIMPLE_ENDPOINT
