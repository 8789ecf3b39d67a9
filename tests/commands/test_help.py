"""Help: each command says in plain text what it does, takes and leaves with, and its examples are commands."""

import re
import shlex
from collections.abc import Iterator
from typing import Any

import pytest
import typer.main
from syrupy.assertion import SnapshotAssertion
from typer.testing import CliRunner

from accel_micro.cli import app

ROOT: Any = typer.main.get_command(app)


def commands(command: Any = ROOT, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every command with the words that lead to it, the hidden `bisect run` too."""
    yield path, command
    for name, each in getattr(command, "commands", {}).items():
        yield from commands(each, (*path, name))


COMMANDS = dict(commands())
LEAVES = {path: command for path, command in COMMANDS.items() if not hasattr(command, "commands")}
every = pytest.mark.parametrize("path", COMMANDS, ids=lambda path: " ".join(path) or "accel-micro")


def help_of(path: tuple[str, ...], columns: int) -> str:
    done = CliRunner(env={"COLUMNS": str(columns)}).invoke(app, [*path, "--help"], prog_name="accel-micro")
    assert done.exit_code == 0, done.output
    return done.output


@pytest.mark.parametrize("columns", [80, 120])
@every
def test_help_fits_the_terminal(path: tuple[str, ...], columns: int) -> None:
    text = help_of(path, columns).partition("Examples:")[0]  # what is to be copied is not wrapped
    assert max(map(len, text.splitlines())) <= columns
    assert not re.search(r"<(str|int|float|path|bool|list)|\[\[|\bNone\b", text), "a word of Python's"


@every
def test_everything_has_a_sentence(path: tuple[str, ...]) -> None:
    command = COMMANDS[path]
    assert command.help
    for parameter in command.params:
        assert parameter.help and parameter.help[0] != " ", parameter.name
        assert re.search(r"[.\])]$", parameter.help), f"{parameter.name}: {parameter.help}"


@pytest.mark.parametrize("path", LEAVES, ids=" ".join)
def test_examples_are_commands(path: tuple[str, ...]) -> None:
    """They have this command's words, and its parser takes them."""
    command = LEAVES[path]
    assert command.epilog
    for line in command.epilog.splitlines():
        words = shlex.split(line.partition(" > ")[0])
        known = (("accel-micro", *path), ("accel-micro", *path[:-1]))  # `bisect run` goes without its word
        begin = next(start for start in known if tuple(words[: len(start)]) == start)
        context = command.make_context("it", words[len(begin) :], resilient_parsing=False)
        assert context.params


def test_an_example_with_a_misspelt_option_would_be_found() -> None:
    with pytest.raises(Exception, match="No such option"):
        LEAVES["quick",].make_context("it", ["--devise", "cpu"])


def test_commands_are_listed_by_what_they_are_for(snapshot: SnapshotAssertion) -> None:
    assert help_of((), 80) == snapshot


def test_help_of_bisect_has_the_options_of_the_search(snapshot: SnapshotAssertion) -> None:
    text = help_of(("bisect",), 100)
    assert text == snapshot
    assert set(re.findall(r"^  (--[a-z-]+)", text, re.M)) == {
        option for each in LEAVES["bisect", "run"].params for option in each.opts if option.startswith("--")
    }


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["qick"], "Did you mean 'quick'?"),
        (["quick", "--benhc", "mm"], "--bench"),
        (["quick", "--profile", "all"], "'quick', 'standard', 'full'"),
        (["builds", "lst"], "Did you mean 'list'?"),
        (["compare", "--format", "xml"], "'table', 'json', 'markdown', 'csv'"),
    ],
)
def test_wrong_words_are_answered_with_the_right_ones(words: list[str], said: str) -> None:
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 2
    assert said in done.output
