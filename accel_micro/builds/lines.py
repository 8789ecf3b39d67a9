"""The ledger's file: one JSON line a record, of a build, a wheel, or an interpreter that has a build.

Lines are only ever added, several in one write, so that runs may add at once and two ledgers are merged by
putting one after the other.
"""

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from accel_micro.appending import append_text
from accel_micro.builds.identity import CHANNELS, ID_LENGTH, Build
from accel_micro.builds.wheels import DEFAULT_VARIANT, Place, Wheel, named

SCHEMA: Final = 1

_ID: Final = re.compile(rf"[0-9a-f]{{{ID_LENGTH}}}")


@dataclass(frozen=True)
class Installation:
    """An interpreter that has a build, usually one made from source; it is of this machine alone.

    Attributes:
        build_id: of the `Build`.
        python: absolute path of the interpreter. It may have another torch by now.
    """

    build_id: str
    python: str


Record = Build | Wheel | Installation


def read(path: Path, problems: list[str] | None) -> Iterator[Record]:
    """The records of a file, in its order; a missing file has none.

    Args:
        problems: where lines that are no records are named, when given; they are skipped.

    Raises:
        OSError: the file is there and cannot be read.
    """
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            yield _from_json(json.loads(line))
        except (AttributeError, KeyError, RecursionError, TypeError, ValueError) as error:
            if problems is not None:
                problems.append(f"{path}:{number}: not a build, skipped ({type(error).__name__}: {error})")


def append(path: Path, records: Iterable[Record]) -> None:
    """Add records in one write; nothing is written for none.

    Raises:
        OSError: the file cannot be written.
    """
    text = "".join(json.dumps(_to_json(record)) + "\n" for record in records)
    if not text:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    append_text(path, text)


def _to_json(record: Record) -> dict[str, Any]:
    facts: dict[str, Any] = dict(vars(record))
    if isinstance(record, Build):
        return {"schema": SCHEMA, **facts}
    if isinstance(record, Wheel):
        facts["places"] = [vars(place) for place in record.places]
    told = {name: value for name, value in facts.items() if value is not None}
    return {"schema": SCHEMA, "kind": type(record).__name__.lower(), **told}


def _from_json(data: Any) -> Record:
    if data["schema"] != SCHEMA:
        raise ValueError(f"build of schema {data['schema']!r}, this version reads {SCHEMA}")
    kind = data.get("kind")
    if kind == "wheel":
        return _wheel(data)
    if kind == "installation":
        return Installation(_id(data["build_id"]), str(data["python"]))
    if kind is not None:
        raise ValueError(f"record of kind {kind!r}")
    build = Build(
        id=_id(data["id"]),
        channel=str(data["channel"]),
        version=str(data["version"]),
        date_milliseconds=_integer(data["date_milliseconds"]),
        git_version=_text(data["git_version"]),
        main_commit=_text(data.get("main_commit")),
    )
    if build.channel not in CHANNELS:
        raise ValueError(f"id {build.id!r} of channel {build.channel!r}")
    return build


def _wheel(data: Any) -> Wheel:
    named(str(data["file_name"]))  # a shared ledger must not lead out of a folder either
    return Wheel(
        build_id=_id(data["build_id"]),
        version=str(data["version"]),
        file_name=str(data["file_name"]),
        variant=str(data.get("variant", DEFAULT_VARIANT)),
        places=tuple(
            Place(str(place["url"]), str(place["index"]), bool(place["listed"]))
            for place in data.get("places", ())
        ),
        size_bytes=_integer(data.get("size_bytes")),
        sha256=_text(data.get("sha256")),
        metadata_sha256=_text(data.get("metadata_sha256")),
        git_version=_text(data.get("git_version")),
        uploaded_milliseconds=_integer(data.get("uploaded_milliseconds")),
        first_seen_milliseconds=int(data.get("first_seen_milliseconds", 0)),
        changed_milliseconds=int(data.get("changed_milliseconds", 0)),
        broken=_text(data.get("broken")),
        replaced=int(data.get("replaced", 0)),
    )


def _id(value: Any) -> str:
    if not _ID.fullmatch(str(value)):
        raise ValueError(f"id {value!r}")
    return str(value)


def _integer(value: Any) -> int | None:
    return None if value is None else int(value)


def _text(value: Any) -> str | None:
    return None if value is None else str(value)
