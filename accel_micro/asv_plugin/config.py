"""Which configuration a command uses: the user's, the checkout's, or the one that travels in the package."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import accel_micro

FILE_NAMES: Final = ("asv.conf.json", "asv.conf.jsonc")
PLUGIN: Final = ".accel_micro.asv_plugin"
OUTPUT: Final = "accel-micro-out"
"""Folder of results, below the current one, when the configuration in the package is used."""

REPORT: Final = "report.html"
"""The report of the last `accel-micro quick`, among the published pages; it survives the next publishing."""


CROSSOVER: Final = "crossover.html"
"""The page of the last `accel-micro crossover`, the same."""


class NoConfiguration(LookupError):
    """There is no such configuration, or it is not one of ours; the message says where was looked."""


@dataclass(frozen=True)
class Found:
    """A configuration's file. `bundled`: it lies in the package, where nothing may be written."""

    path: Path
    bundled: bool = False


def find_config(chosen: Path | None = None, start: Path | None = None) -> Found:
    """The configuration to use.

    That is the chosen one, else the nearest at or above `start` that names our plugin, else the checkout's
    beside the package, else the package's own.

    Raises:
        NoConfiguration: the chosen file is missing or not ours, or there is none at all.
    """
    if chosen is not None:
        path = next((p for p in (chosen, *(chosen / name for name in FILE_NAMES)) if p.is_file()), None)
        if path is None:
            raise NoConfiguration(f"{chosen} is no file and holds no {FILE_NAMES[0]}")
        if not names_plugin(path):
            raise NoConfiguration(f'{path} does not list "{PLUGIN}" among its plugins')
        return Found(path.resolve())
    start = (start or Path.cwd()).resolve()
    package = Path(accel_micro.__file__).resolve().parent
    for folder in (start, *start.parents, package.parent):
        for name in FILE_NAMES:
            if names_plugin(folder / name):
                return Found(folder / name)
    bundled = package / "_suite" / FILE_NAMES[0]
    if not bundled.is_file():
        raise NoConfiguration(f"no {FILE_NAMES[0]} in {start} or above, and none came with accel_micro")
    return Found(bundled, bundled=True)


def names_plugin(path: Path) -> bool:
    """Whether a file is an asv configuration that lists our plugin."""
    try:
        if PLUGIN not in path.read_text(encoding="utf-8"):
            return False  # asv's own reader is slow
    except (OSError, UnicodeDecodeError):
        return False
    return PLUGIN in _read(path).get("plugins", [])


def load(found: Found, results: Path | None = None, html: Path | None = None) -> Any:
    """asv's configuration object, its folders absolute, so that the current directory does not matter.

    Args:
        results, html: folders that replace those of the file.

    Raises:
        NoConfiguration: the file cannot be read.
    """
    from asv.config import Config

    conf = Config.from_json(_read(found.path))
    base = Path.cwd() / OUTPUT if found.bundled else found.path.parent
    conf.benchmark_dir = str(found.path.parent / conf.benchmark_dir)
    conf.results_dir = str(_absolute(results) or base / conf.results_dir)
    conf.html_dir = str(_absolute(html) or base / conf.html_dir)
    conf.env_dir = str(base / conf.env_dir)
    return conf


def _absolute(path: Path | None) -> Path | None:
    return None if path is None else Path.cwd() / path


def _read(path: Path) -> dict[str, Any]:
    from asv.util import UserError, load_json

    try:
        return dict(load_json(str(path), js_comments=True))
    except (OSError, ValueError, UserError) as error:
        raise NoConfiguration(f"{path} cannot be read: {error}") from None
