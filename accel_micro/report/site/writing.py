"""The pages as files: each written beside its name and then renamed; pages of cases that are no more are removed."""

import contextlib
import gc
import os
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import accel_micro
from accel_micro.measure.records import Case
from accel_micro.report import comparison_words
from accel_micro.report.html import code
from accel_micro.report.site import builds, changes, explanations, machines, overview, significance
from accel_micro.report.site.case import case_page
from accel_micro.report.site.compared import compare_builds
from accel_micro.report.site.gather import Gathered, Place, gather
from accel_micro.report.site.text import file_name

if TYPE_CHECKING:
    from jinja2 import Environment

FIRST: Final = "overview.html"
ASV: Final = "index.html"
RUN: Final = "report.html"
CROSSOVER: Final = "crossover.html"
_PAGES: Final[tuple[tuple[str, str], ...]] = (
    (FIRST, "Overview"),
    ("significance.html", "Significance"),
    ("builds.html", "Builds"),
    ("machines.html", "Machines"),
    (explanations.INDEX, "Explanations"),
)
_OF_OTHERS: Final = ((RUN, "Latest quick run"), (CROSSOVER, "Crossovers"), (ASV, "asv"))
"""Pages that are linked where they are there."""


@dataclass(frozen=True)
class Written:
    """What was written: the page to open first, and how many cases, builds, comparisons and regressions it tells of."""

    first: Path
    cases: int
    builds: int
    comparisons: int
    regressions: int
    seconds: float
    problems: tuple[str, ...]


def write_site(
    folder: Path,
    results: Path,
    *,
    baseline: str | None = None,
    contender: str | None = None,
) -> Written:
    """Write the pages about a folder of results.

    Args:
        folder: where they go; other files there stay.
        baseline, contender: names of builds that the pages compare, else see `compare_builds`.

    Raises:
        UnknownBuild: no build, or several, go by a name.
        OSError: a file cannot be read or written.
    """
    with _uncollected():
        return _write_site(folder, results, baseline, contender)


@contextlib.contextmanager
def _uncollected() -> Iterator[None]:
    """Without looking for cycles among the objects of years of builds: there are none, and it takes a tenth of all."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _write_site(folder: Path, results: Path, baseline: str | None, contender: str | None) -> Written:
    start = time.perf_counter()
    gathered = gather(results)
    comparisons = compare_builds(gathered, baseline, contender)
    sections = significance.sections(comparisons)
    verdicts: dict[tuple[Place, Case], list[significance.VerdictRow]] = {}
    for comparison, section in zip(comparisons, sections, strict=True):
        for compared, row in zip(comparison.rows, section.rows, strict=True):
            key = compared.pair.contender.key
            verdicts.setdefault((Place(key.machine, key.environment), key.case), []).append(row)
    proposed = changes.proposals(gathered)
    rows = overview.case_rows(gathered, verdicts, proposed)
    outcomes = builds.find_outcomes(gathered)
    environment = _environment([*_PAGES, *_existing(folder, _OF_OTHERS)])

    def render(name: str, **values: Any) -> None:
        _render(environment, folder, name, **values)

    _write_shared(environment, folder)
    explained, foreign = explanations.listed(folder)
    render(explanations.INDEX, listed=explained)
    render(
        FIRST,
        rows=rows,
        sections=sections,
        options=overview.options(rows),
        steps=overview.step_rows(gathered, rows, proposed),
        many_machines=len(gathered.measured) > 1,
        problems=gathered.problems,
        chosen=bool(baseline or contender),
    )
    render(
        "significance.html",
        sections=sections,
        options=significance.options(sections),
        chosen=bool(baseline or contender),
    )
    render("builds.html", rows=builds.rows(gathered.ledger, outcomes), most=builds.MOST_FAILURES)
    render("machines.html", machines=machines.machines(gathered), not_calibrated=machines.NOT_CALIBRATED)
    _write_cases(
        folder / "cases",
        gathered,
        lambda key: case_page(
            key[2], gathered.measured[key[0]], verdicts.get(key[:2], ()), proposed.get(key[:2], ())
        ),
        environment,
    )
    return Written(
        first=folder / FIRST,
        cases=len(gathered.histories),
        builds=len({build.id for found in gathered.measured.values() for build in found}),
        comparisons=len(sections),
        regressions=sum(section.counts["regression"] for section in sections),
        seconds=time.perf_counter() - start,
        problems=(*gathered.problems, *foreign),
    )


def publish_explanation(
    folder: Path, title: str, write: Callable[[Path, str], None]
) -> tuple[Path, list[str]]:
    """Put an explanation among the pages of a folder, and list it. Pages about results need not be there.

    Args:
        title: of the explanation; one with the same title is replaced.
        write: writes it: told its path, and the address of the list relative to that.

    Returns:
        Its path, and what else lies there and is none, in sentences.

    Raises:
        OSError: a file cannot be written.
    """
    path = folder / explanations.FOLDER / explanations.name_of(title)
    path.parent.mkdir(parents=True, exist_ok=True)
    write(path, f"../{explanations.INDEX}")
    pages = [page for page in _PAGES if page[0] == explanations.INDEX or (folder / page[0]).is_file()]
    environment = _environment([*pages, *_existing(folder, _OF_OTHERS)])
    _write_shared(environment, folder)
    found, foreign = explanations.listed(folder)
    _render(environment, folder, explanations.INDEX, listed=found)
    return path, foreign


def _existing(folder: Path, pages: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    return [(href, name) for href, name in pages if (folder / href).is_file()]


def _render(environment: "Environment", folder: Path, name: str, **values: Any) -> None:
    _write(folder / name, environment.get_template(name).render(here=name, root="", **values))


def _write_shared(environment: "Environment", folder: Path) -> None:
    """What all pages load."""
    (folder / "site").mkdir(parents=True, exist_ok=True)
    for name, source in (("style.css", "site.css"), ("script.js", "site.js")):
        _write(folder / "site" / name, environment.get_template(source).render())


def _write_cases(
    folder: Path, gathered: Gathered, page: "Callable[[Any], Any]", environment: "Environment"
) -> None:
    folder.mkdir(exist_ok=True)
    template = environment.get_template("case.html")
    written = set()
    for history in gathered.histories:
        if not history.points and not history.failures:
            continue  # skipped everywhere
        name = file_name(history.place, history.case)
        shown = page((history.place, history.case, history))
        _write(folder / name, template.render(page=shown, here="", root="../"))
        written.add(name)
    for path in folder.glob("*.html"):
        if path.name not in written:
            path.unlink()


def _environment(pages: Iterable[tuple[str, str]]) -> "Environment":
    from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=ChoiceLoader(
            [
                PackageLoader("accel_micro.report.site", "templates"),
                PackageLoader("accel_micro.report", "templates"),
            ]
        ),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["code"] = code
    environment.globals.update(
        pages=[{"href": href, "name": name} for href, name in pages],
        version=accel_micro.__version__,
        signs=comparison_words.names("build"),
    )
    return environment


def _write(path: Path, text: str) -> None:
    partial = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        partial.write_text(text, encoding="utf-8")
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
