"""asv inside this process: which configuration, which variables, where its output goes, and its errors as ours."""

import contextlib
import logging
import os
import re
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from accel_micro.asv_plugin.config import NoConfiguration, find_config, load

WRONG_USE: Final = 2
ENVIRONMENT: Final = 3
_EXCEPTION: Final = re.compile(r"(?!subprocess\.|asv\.)[\w.]+(Error|Exception|Exit|Warning)(: .*)?$")


class SessionError(RuntimeError):
    """The run could not be done. `exit_code` is that of a command: 2 for wrong use, 3 for the environment."""

    def __init__(self, message: str, exit_code: int) -> None:
        super().__init__(message)
        self.exit_code = exit_code


def configured(config: Path | None, results: Path | None, html: Path | None) -> Any:
    """asv's configuration, see `config.find_config` and `config.load`.

    Raises:
        SessionError: there is none.
    """
    try:
        return load(find_config(config), results, html)
    except NoConfiguration as error:
        raise SessionError(str(error), WRONG_USE) from None


def told(error: Exception, log: Path) -> SessionError:
    """An error of asv's as one of ours; where its text says nothing, what the log says."""
    code = getattr(error, "exit_code", WRONG_USE)
    text = str(error).strip()
    if text and "Failed to build the project" not in text:
        return SessionError(text, code)
    # asv's error says nothing here; what the suite's own process printed last is in the log.
    said = log.read_text(encoding="utf-8", errors="replace")
    printed = [line.strip() for line in said.splitlines() if _EXCEPTION.match(line.strip())]
    why = printed[-1] if printed else text or "asv failed"
    return SessionError(f"the suite cannot be imported: {why} (all of it: {log})", code)


@contextlib.contextmanager
def variables(values: Mapping[str, str | None]) -> Iterator[None]:
    """Environment variables that hold inside the block; those without a value stay what they are."""
    before = {name: os.environ.get(name) for name in values}
    try:
        os.environ.update({name: value for name, value in values.items() if value is not None})
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


@contextlib.contextmanager
def quiet(path: Path | None) -> Iterator[Path]:
    """Write what asv says to a file: its logger is the process's root logger otherwise."""
    from asv.console import log

    if path is None:
        handle, name = tempfile.mkstemp(prefix="accel-micro-", suffix=".log")
        os.close(handle)
        path = Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    writer = logging.FileHandler(path, encoding="utf-8")
    logger = logging.Logger("accel_micro.asv", logging.INFO)
    logger.addHandler(writer)
    before, log._logger = log._logger, logger
    log.dot = lambda: None  # it prints to a terminal directly
    try:
        yield path
    finally:
        log._logger = before
        del log.dot
        writer.close()
