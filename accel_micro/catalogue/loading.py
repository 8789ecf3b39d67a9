"""A folder of families to the ops that they define. Importing them imports torch."""

import importlib
import pkgutil
import sys
from pathlib import Path

from accel_micro.suite import OpBenchmark


class NotASuite(ImportError):
    """A folder has no families, or one of them cannot be imported; the message says which and why."""


def load(folder: Path) -> list[type[OpBenchmark]]:
    """The classes of all families in a folder, by family, in the order in which each defines them.

    The folder is imported as the package that it is, so its parent becomes the first place where modules are looked
    for.

    Raises:
        NotASuite: it is no package, or a module of it cannot be imported.
    """
    folder = folder.resolve()
    if not (folder / "__init__.py").is_file():
        raise NotASuite(f"{folder} is not a folder of benchmarks: it has no __init__.py")
    if str(folder.parent) not in sys.path:
        sys.path.insert(0, str(folder.parent))
    found: list[type[OpBenchmark]] = []
    for module in sorted(pkgutil.iter_modules([str(folder)]), key=lambda module: module.name):
        name = f"{folder.name}.{module.name}"
        try:
            values = vars(importlib.import_module(name)).values()
        except Exception as error:
            raise NotASuite(f"{name} cannot be imported: {type(error).__name__}: {error}") from error
        found += [value for value in values if _is_op(value) and value.__module__ == name]
    return found


def _is_op(value: object) -> bool:
    return isinstance(value, type) and issubclass(value, OpBenchmark) and value is not OpBenchmark
