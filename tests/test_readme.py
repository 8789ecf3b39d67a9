"""README and docs say what is so: the example runs, commands, flags and files exist, links lead somewhere."""

import ast
import html
import importlib.util
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import click
import pytest
import typer.main
from asv.commands import make_argparser

from accel_micro.cli import app
from accel_micro.devices.registry import DEVICE_KINDS
from accel_micro.measure import CLOCKS, SAMPLES, gate, plausibility, sampling, warmup
from accel_micro.measure.flags import REMEDIES
from accel_micro.measure.records import FAILURES
from accel_micro.profiles import PROFILES
from accel_micro.report.words import GLOSSARY
from accel_micro.suite import OpBenchmark

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
DESIGN, MEASURING = ROOT / "docs" / "design.md", ROOT / "docs" / "measuring.md"
PAGES = [README, ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
SOURCE = "\n".join(path.read_text(encoding="utf-8") for path in sorted((ROOT / "accel_micro").rglob("*.py")))

pages = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)


def text_of(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def section(page: Path, heading: str) -> str:
    """What stands below a heading, up to the next one of its level."""
    found = re.search(rf"^(##+) {re.escape(heading)}$\n(.*?)(?=^\1 |\Z)", text_of(page), re.M | re.S)
    assert found is not None, f"{page.name} has no section {heading!r}"
    return found[2]


def first_cells(text: str) -> list[str]:
    """The first cell of each row of the tables in a text, without their heads."""
    rows = [line.strip("|").split("|")[0].strip() for line in text.splitlines() if line.startswith("|")]
    heads = {i - 1 for i, cell in enumerate(rows) if cell and not cell.strip("-:")}
    return [cell for i, cell in enumerate(rows) if cell.strip("-:") and i not in heads]


def code_of(page: Path) -> Iterator[str]:
    """Lines of fenced blocks, and what stands between backticks."""
    fence = re.compile(r"^```\w*\n(.*?)^```", re.M | re.S)
    for block in fence.findall(text_of(page)):
        yield from block.replace("\\\n", " ").splitlines()
    yield from re.findall(r"`([^`\n]+)`", fence.sub("", text_of(page)))


# The example


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> type[OpBenchmark]:
    """The class that the README's example makes."""
    source = re.search(r"<!-- example -->\n```python\n(.*?)```", text_of(README), re.S)
    assert source is not None
    path = tmp_path_factory.mktemp("benchmarks") / "activation.py"
    path.write_text(source[1])
    spec = importlib.util.spec_from_file_location("activation", path)
    assert spec is not None and spec.loader is not None
    module = sys.modules["activation"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    (made,) = [value for value in vars(module).values() if isinstance(value, type)]
    return made


def test_the_example_is_at_most_ten_lines(example: type[OpBenchmark]) -> None:
    source = re.search(r"<!-- example -->\n```python\n(.*?)```", text_of(README), re.S)
    assert source is not None and len([line for line in source[1].splitlines() if line.strip()]) <= 10
    assert "benchmarks/activation.py" in text_of(README)


@pytest.mark.usefixtures("known_machine")
@pytest.mark.parametrize("direction", ["forward", "backward"])
def test_the_example_runs(example: type[OpBenchmark], direction: str) -> None:
    first, *others = example.op.all_shapes
    for dtype, shape in [*((dtype, first) for dtype in example.op.dtypes), *(("float32", s) for s in others)]:
        record = example().run(direction, "cpu", dtype, shape, samples=2, budget_seconds=0.01)
        assert record.failure is None and record.skipped is None, record
        assert record.clocks["throughput"].median_seconds > 0
        assert record.check is not None and record.check.error <= record.check.tolerance
        assert record.work is not None and record.work.bytes > 0


# Commands


def commands() -> Iterator[tuple[Path, list[str]]]:
    """Every `accel-micro …` and `asv …` of the pages, as words."""
    for page in PAGES:
        for line in code_of(page):
            for command in re.split(r"&&|;|#", line):
                words = command.split()
                while words and re.fullmatch(r"[A-Z_]+=\S*|time", words[0]):
                    words = words[1:]
                if words and Path(words[0]).name in {"accel-micro", "asv"}:
                    yield page, [Path(words[0]).name, *words[1:]]


COMMANDS = list(commands())


def test_there_are_commands_to_check() -> None:
    used = {tuple(words[:2]) for _, words in COMMANDS}
    for command in ("quick", "doctor", "preview"):
        assert ("accel-micro", command) in used
    for command in ("run", "show", "publish"):
        assert ("asv", command) in used


@pytest.mark.parametrize(("page", "words"), COMMANDS, ids=lambda part: getattr(part, "name", None))
def test_commands_and_their_options_exist(page: Path, words: list[str]) -> None:
    known = accel_micro_options if words[0] == "accel-micro" else asv_options
    options = known(words[1:])
    for option in [word.partition("=")[0] for word in words if word.startswith("-")]:
        assert option in options, f"{page.name}: {' '.join(words)} has no {option}"


def accel_micro_options(words: Sequence[str]) -> set[str]:
    command: click.Command = typer.main.get_command(app)
    for word in words:
        subcommands: dict[str, click.Command] = getattr(command, "commands", {})
        default = subcommands.get("run")
        if default and word not in subcommands:
            command = default  # `bisect BENCHMARK` is `bisect run BENCHMARK`
            break
        if not subcommands or word.startswith("-"):
            break
        assert word in subcommands, f"accel-micro has no command {word}"
        command = subcommands[word]
    options = (option for each in command.params for option in (*each.opts, *each.secondary_opts))
    return {*options, "-h", "--help"}


def asv_options(words: Sequence[str]) -> set[str]:
    parser, subparsers = make_argparser()
    if not words:
        return set(parser._option_string_actions)
    assert words[0] in subparsers.choices, f"asv has no command {words[0]}"
    return set(subparsers.choices[words[0]]._option_string_actions)


def test_quicks_options_are_those_that_the_readme_names() -> None:
    named = set(re.findall(r"`(--[a-z]+)", section(README, "More than quick").partition("\n|")[0]))
    assert {"--device", "--bench", "--profile", "--rounds", "--format", "--out"} <= named
    assert named <= accel_micro_options(["quick"])
    assert f"--profile {'|'.join(PROFILES)}" in text_of(README)


@pytest.mark.parametrize("command", ["quick-command", "test-command"])
def test_no_command_names_a_version_or_an_index(command: str) -> None:
    block = re.search(rf"<!-- {command} -->\n```sh\n(.*?)```", text_of(README), re.S)
    assert block is not None
    assert not re.search(r"==|index-url|find-links|https?:", block[1])


# Words


@pages
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", text_of(page)):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        file = (page.parent / path) if path else page
        assert file.exists(), f"{page.name} links to {target}"
        if anchor:
            assert anchor in anchors(file), f"{page.name} links to {target}"


def anchors(page: Path) -> set[str]:
    """Of the headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", text_of(page), re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_the_support_table_names_every_device() -> None:
    named = " ".join(first_cells(section(README, "Which devices")))
    for kind in (*DEVICE_KINDS, "ROCm"):
        assert kind in named
    assert {cell.strip("`") for cell in first_cells(section(DESIGN, "From a definition to cases"))} == set(
        PROFILES
    )


def test_flags_are_those_of_the_code() -> None:
    documented = [cell.strip("`") for cell in first_cells(section(MEASURING, "Flags"))]
    raised = {name for name in REMEDIES if SOURCE.count(f'"{name}"') > 1}  # once where they are defined
    assert raised <= set(documented) <= set(REMEDIES)
    assert sorted(documented) == sorted(set(documented))


def test_failures_are_those_of_the_code() -> None:
    rows = [cell.strip("`") for cell in first_cells(section(DESIGN, "When something goes wrong"))]
    assert [row for row in rows if not row.isdecimal()] == list(FAILURES)


def test_clocks_and_words_are_those_of_the_report() -> None:
    assert sorted(cell.strip("*") for cell in first_cells(section(MEASURING, "Four clocks"))) == sorted(
        CLOCKS
    )
    words = section(README, "Words")
    assert [word for word in GLOSSARY if f"**{word}**" not in words] == []


@pages
def test_variables_and_files_that_are_named_exist(page: Path) -> None:
    for variable in re.findall(r"\bACCEL_MICRO_\w+", text_of(page)):
        assert f'"{variable}"' in SOURCE, f"{page.name}: {variable}"
    for code in code_of(page):
        named = re.fullmatch(r"(?:accel_micro|benchmarks|tests|docs|\.ci)/[\w./-]*", code)
        if named and code != "benchmarks/activation.py":
            assert (ROOT / code).exists(), f"{page.name}: {code}"
        if code.startswith("python -m benchmarks.harness "):
            assert f'add_parser("{code.split()[3]}"' in text_of(
                ROOT / "benchmarks" / "harness" / "__main__.py"
            )


def test_the_rooms_are_those_of_the_package() -> None:
    block = section(DESIGN, "Rooms")
    inside = re.search(r"^accel_micro/.*?\n(?=tests/)", block, re.M | re.S)
    assert inside is not None
    named = set(re.findall(r"^  (\w+)[/.]", inside[0], re.M)) | set(re.findall(r"(\w+)\.py", inside[0]))
    there = {path.stem for path in (ROOT / "accel_micro").iterdir() if not path.name.startswith("_")} - {"py"}
    assert named == there


CONSTANTS: list[tuple[Any, str]] = [
    (SAMPLES, r"keeps exactly (\d+), always"),
    (1e3 * warmup.BLOCK_SECONDS, r"A block lasts (\d+) ms at least"),
    (100 * warmup._AGREEMENT, r"medians of ten readings agree within (\d+) %"),
    (gate.FULL_SPEED, r"slower probe reached (0\.\d+) of the reference"),
    (100 * gate.LITTLE_WAITING, r"waited for more than (\d+) % of its time"),
    (gate.PRIOR_SENSITIVITY, r"drawn towards\s+(0\.\d+) where"),
    (plausibility.MARGIN, r"exceed (1\.\d+) × the peak"),
    (plausibility.FEWEST_GROWTH, r"must take longer, by (1\.\d+) at least"),
    (100 * sampling._NOISY, r"scatter by more than (\d+) %"),
    (100 * sampling._LOW_CLOCK, r"ran below (\d+) % of its usual clock"),
    (100 * sampling._AGREEMENT, r"must lie within (\d+) %"),
]


@pytest.mark.parametrize(("value", "sentence"), CONSTANTS, ids=[sentence for _, sentence in CONSTANTS])
def test_numbers_are_those_of_the_code(value: float, sentence: str) -> None:
    found = re.search(sentence, text_of(MEASURING))
    assert found is not None
    assert ast.literal_eval(found[1]) == pytest.approx(value)


def test_the_picture_shows_what_is_printed_today(tmp_path: Path) -> None:
    spec = importlib.util.spec_from_file_location("picture", ROOT / "docs" / "picture.py")
    assert spec is not None and spec.loader is not None
    picture = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(picture)
    picture.draw_table(picture.records(), tmp_path / "quick.svg")
    assert words_in(tmp_path / "quick.svg") == words_in(ROOT / "docs" / "quick.svg")


def words_in(svg: Path) -> list[str]:
    """What is written in a drawing; how it is placed and coloured is the drawing library's matter."""
    texts = re.findall(r"<text[^>]*>(.*?)</text>", text_of(svg), re.S)
    return [word for text in texts for word in html.unescape(text).split()]


def test_the_readme_is_short_and_its_pictures_are_small() -> None:
    assert len(text_of(README).splitlines()) < 200
    pictures = re.findall(r"(?:!\[[^\]]*\]\(|src=\")([^)\"]+)", text_of(README))
    assert pictures
    for picture in pictures:
        assert (ROOT / picture).stat().st_size < 300_000
        if picture.endswith(".svg"):
            drawn = text_of(ROOT / picture)
            assert not re.findall(r"url\(\"?https?:|<script|href=\"https?:", drawn), "it must load nothing"
