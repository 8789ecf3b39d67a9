"""The folder of what accel_micro remembers about a machine; losing it costs seconds of measuring again."""

import os
from pathlib import Path
from typing import Final

ENVIRONMENT_VARIABLE: Final = "ACCEL_MICRO_CACHE"
"""Names another folder than the user's cache folder."""


def cache_folder() -> Path:
    """The folder; it may not exist yet."""
    named = os.environ.get(ENVIRONMENT_VARIABLE)
    if named:
        return Path(named)
    from platformdirs import user_cache_path

    return user_cache_path("accel_micro")
