"""`builds.html` among the published pages, where asv's page looks a commit up: what each build is, and what failed.

One file that needs no other. What it shows comes from ledgers, wheels and results that others made, so all of it is
escaped, and an address is a link only where it leads to a web server.
"""

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from accel_micro.builds import Build, Ledger, Wheel
from accel_micro.builds.commits import commit_url, compare_url, same_commit
from accel_micro.builds.disk import human_bytes
from accel_micro.measure.records import SUFFIX, Case
from accel_micro.results import installs

FILE_NAME: Final = "builds.html"
_MOST_FAILURES: Final = 50


@dataclass
class Found:
    """What results say about one build.

    Attributes:
        measured: machine → cases with a time.
        failed: (machine, what, why) of cases without one, and of installations.
        without: machine → dependencies that were to be had nowhere when it was installed there.
    """

    measured: dict[str, int] = field(default_factory=dict)
    failed: list[tuple[str, str, str]] = field(default_factory=list)
    without: dict[str, str] = field(default_factory=dict)


def write(html_folder: Path, results: Path) -> None:
    """Write the page for a folder of results."""
    page = render(Ledger.beside(results), find_outcomes(results))
    (html_folder / FILE_NAME).write_text(page, encoding="utf-8")


def render(ledger: Ledger, outcomes: Mapping[str, Found]) -> str:
    """The page, newest build first."""
    import jinja2

    template = jinja2.Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True).from_string(_PAGE)
    before: dict[str, Build] = {}
    rows = []
    for build in ledger:
        rows.append(_row(ledger, build, before.get(build.channel), outcomes.get(build.id, Found())))
        before[build.channel] = build
    return template.render(rows=rows[::-1], most=_MOST_FAILURES)


def find_outcomes(results: Path) -> dict[str, Found]:
    """Id of a build → what is in a folder of results about it."""
    found: dict[str, Found] = defaultdict(Found)
    for path in sorted(results.glob(f"*/*{SUFFIX}")):
        # The last process of a case tells how it stands.
        last: dict[tuple[str, str], dict[str, Any]] = {}
        for data in _records(path):
            last[str(data["build"]), json.dumps(data["case"])] = data
        for (build, _), data in last.items():
            machine = path.parent.name
            if data["clocks"]:
                found[build].measured[machine] = found[build].measured.get(machine, 0) + 1
            elif data["failure"]:
                failure = data["failure"]
                why = f"{failure['kind']}: {failure['detail']}".removesuffix(": ")
                found[build].failed.append((machine, str(Case(**data["case"])), why))
    latest = {
        (machine, line["build"], line.get("environment")): line for machine, line in installs.read(results)
    }
    for (machine, build, _), line in latest.items():
        if line.get("failure"):
            found[build].failed.append((machine, "installation", str(line["failure"])))
        elif isinstance(line.get("without"), list) and line["without"]:
            found[build].without[machine] = ", ".join(map(str, line["without"]))
    return dict(found)


def _records(path: Path) -> Iterator[dict[str, Any]]:
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return
    for line in lines:
        try:
            data = json.loads(line)
            Case(**data["case"])
            if isinstance(data["clocks"], dict) and (data["failure"] is None or data["failure"]["kind"]):
                yield data
        except (AttributeError, KeyError, TypeError, ValueError):
            continue  # whoever reads results for their numbers names it


def _row(ledger: Ledger, build: Build, before: Build | None, outcome: Found) -> dict[str, Any]:
    date = build.date_milliseconds
    commit = build.main_commit or build.git_version
    return {
        "id": build.id,
        "version": build.version,
        "channel": build.channel,
        "date": "" if date is None else datetime.fromtimestamp(date / 1000, timezone.utc).date().isoformat(),
        "commit": commit,
        "commit_url": commit_url(build),
        "before": before.version if before else None,
        "compare_url": compare_url(before, build) if before else None,
        "same": before is not None and same_commit(before, build),
        "wheels": [_wheel(wheel) for wheel in ledger.wheels(build.id)],
        "measured": sorted(outcome.measured.items()),
        "failed": sorted(outcome.failed),
        "without": sorted(outcome.without.items()),
    }


def _wheel(wheel: Wheel) -> dict[str, Any]:
    return {
        "name": wheel.file_name,
        "url": next(_web(wheel.urls), None),
        "size": None if wheel.size_bytes is None else human_bytes(wheel.size_bytes),
        "sha256": wheel.sha256,
        "listed": wheel.listed,
        "broken": wheel.broken,
    }


def _web(urls: Iterable[str]) -> Iterator[str]:
    return (url for url in urls if urlsplit(url).scheme in ("http", "https"))


_PAGE: Final = """\
<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Builds of torch</title>
<style>
:root { color-scheme: light dark; --line: #8884; --mark: #fd06; --bad: #c22; }
body { font: 15px/1.45 system-ui, sans-serif; margin: 1.5em auto; max-width: 110em; padding: 0 1.5em; }
table { border-collapse: collapse; width: 100%; }
th { position: sticky; top: 0; background: Canvas; }
td, th { padding: .35em 1em .35em 0; text-align: left; vertical-align: top; border-bottom: 1px solid var(--line); }
tr:target td { background: var(--mark); }
code { font-size: .9em; overflow-wrap: anywhere; }
summary, .bad { color: var(--bad); }
summary { cursor: pointer; }
small { opacity: .75; }
ul { margin: .2em 0; padding-left: 1.2em; }
</style>
<h1>Builds of torch</h1>
<p>Newest first. <a href="index.html">Back to the history</a></p>
{% if rows %}
<table>
<thead><tr><th>Version<th>Date or first seen<th>PyTorch commit<th>Changes<th>Wheels<th>Measured<th>Failed</thead>
<tbody>
{% for row in rows %}
<tr id="{{ row.id }}">
<td><b>{{ row.version }}</b><br><small>{{ row.channel }} <code title="{{ row.id }}">{{ row.id[:8] }}</code></small>
<td>{{ row.date }}
<td>{% if row.commit_url %}<a href="{{ row.commit_url }}"><code>{{ row.commit[:12] }}</code></a>
{%- else %}not known{% endif %}

<td>{% if row.same %}none: made of the same commit as {{ row.before }}
{%- elif row.compare_url %}<a href="{{ row.compare_url }}">since {{ row.before }}</a>{% endif %}

<td>{% for wheel in row.wheels %}<div>
{%- if wheel.url %}<a href="{{ wheel.url }}"><code>{{ wheel.name }}</code></a>{% else %}<code>{{ wheel.name }}</code>
{%- endif %}
{%- if wheel.size %} <small>{{ wheel.size }}</small>{% endif %}
{%- if wheel.sha256 %} <small title="sha256 {{ wheel.sha256 }}">sha256 {{ wheel.sha256[:8] }}</small>{% endif %}
{%- if not wheel.listed %} <small>no longer listed</small>{% endif %}
{%- if wheel.broken %}<div class="bad">broken: {{ wheel.broken }}</div>{% endif %}</div>{% endfor %}

<td>{% for machine, count in row.measured %}{{ machine }}: {{ count }} case{{ "" if count == 1 else "s" }}<br>
{%- endfor %}
{%- for machine, names in row.without %}<small>{{ machine }}: installed without {{ names }}</small><br>
{%- endfor %}

<td>{% if row.failed %}<details{% if row.failed|length < 4 %} open{% endif %}>
<summary>{{ row.failed|length }} failed</summary><ul>
{% for machine, what, why in row.failed[:most] %}
<li>{{ what }} on {{ machine }}: {{ why }}
{% endfor %}
{% if row.failed|length > most %}<li>and {{ row.failed|length - most }} more{% endif %}
</ul></details>{% endif %}

{% endfor %}
</table>
{% else %}
<p>No build is known yet: <code>accel-micro builds sync</code> asks the indexes.</p>
{% endif %}
</html>
"""
