"""Indexes of wheels: where they are, and what they list.

An index is the root of a simple repository (PEP 503 in HTML, PEP 691 in JSON) by `https://`, `http://` or
`file://`, or a folder of wheels. `{variant}` in its address stands for each variant that is looked for. User names
and passwords belong in `~/.netrc`: those in an address are used for its page, and kept nowhere.
"""

import json
import re
import warnings
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from functools import partial
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, unquote, urlsplit, urlunsplit

from accel_micro.builds.anchors import anchors
from accel_micro.builds.package_index import package_index
from accel_micro.builds.variants import AUTO
from accel_micro.builds.web import LARGEST_WHEEL_BYTES, Absent, Down, Page, Unreachable, Web, without_password
from accel_micro.builds.wheels import DEFAULT_VARIANT, PROJECT, NotAWheel, local_path, named

DEFAULT_INDEXES: Final = (
    "https://download.pytorch.org/whl/nightly/{variant}/",
    "https://download.pytorch.org/whl/{variant}/",
)
"""PyTorch's own."""

SETTINGS: Final = "accel_micro"
"""Our object in `asv.conf.json`; its `indexes` and `variant` are read here."""

INDEXES_VARIABLE: Final = "ACCEL_MICRO_INDEXES"
VARIANT_VARIABLE: Final = "ACCEL_MICRO_VARIANT"

_PLACEHOLDER: Final = "{variant}"
_VARIANT_FOLDER: Final = re.compile(r"cpu|cu\d+|rocm[\d.]+|xpu")
_SHA256: Final = re.compile(r"[0-9a-f]{64}")
_AT_ONCE: Final = 8


class BadIndex(ValueError):
    """An address that is no index, or a page that lists no wheel of torch; the message says what it is."""


@dataclass(frozen=True)
class Settings:
    """Where builds come from.

    Attributes:
        indexes: in the order given.
        variant: its name or `auto`.
        otherwise: index for when those are out of reach; see `sync`. None where the user chose the indexes.
    """

    indexes: tuple[str, ...] = DEFAULT_INDEXES
    variant: str = AUTO
    otherwise: str | None = None


@dataclass(frozen=True)
class Link:
    """One wheel that an index lists. What it does not tell is None."""

    file_name: str
    url: str
    version: str
    variant: str
    size_bytes: int | None = None
    sha256: str | None = None
    metadata_sha256: str | None = None
    uploaded_milliseconds: int | None = None


@dataclass
class Listing:
    """What one page lists, or why it could not be read.

    Attributes:
        index: address of the page or folder, without a password.
        failure: None when it was read.
        absent: the server answers, but there is no such page: a variant it does not offer.
        problems: links that were skipped, and why.
    """

    index: str
    links: list[Link] = field(default_factory=list)
    failure: str | None = None
    absent: bool = False
    problems: list[str] = field(default_factory=list)


def settings(configured: object, environ: Mapping[str, str], base: Path) -> Settings:
    """What the configuration's object and the environment say; the environment wins.

    Args:
        configured: the value of `SETTINGS` in the configuration, None without.
        base: folder that relative paths in the configuration start from.

    Raises:
        BadIndex: the configuration is not of that form.
    """
    data = {} if configured is None else configured
    if not isinstance(data, Mapping):
        raise BadIndex(f'"{SETTINGS}" in the configuration is to be an object, not {data!r}')
    indexes, variant = data.get("indexes", DEFAULT_INDEXES), data.get("variant", AUTO)
    if isinstance(indexes, str):
        indexes = [indexes]
    if (
        not isinstance(indexes, list | tuple)
        or not all(isinstance(one, str) for one in indexes)
        or not indexes
    ):
        raise BadIndex(f'"indexes" in the configuration is to be a list of addresses, not {indexes!r}')
    if not isinstance(variant, str) or not variant.strip():
        raise BadIndex(f'"variant" in the configuration is to be a name such as cpu or auto, not {variant!r}')
    found = [one if "://" in one else str(base / Path(one).expanduser()) for one in indexes]
    asked = environ.get(INDEXES_VARIABLE, "").split()
    otherwise = None if asked or "indexes" in data else package_index(environ)
    return Settings(tuple(asked or found), environ.get(VARIANT_VARIABLE) or variant, otherwise)


def read_all(indexes: Iterable[str], variants: Iterable[str], web: Web) -> list[Listing]:
    """Every page of the indexes, in order. One that cannot be read says so and costs no other."""
    addresses = dict.fromkeys(address for index in indexes for address in _addresses(index, tuple(variants)))
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        fetched = list(pool.map(partial(_fetched, web=web, down={}), addresses))
    return [_listing(*pair) for pair in zip(addresses, fetched, strict=True)]


def _addresses(index: str, variants: tuple[str, ...]) -> list[str]:
    index = index.strip()
    if "://" not in index:
        index = Path(index).expanduser().absolute().as_uri()
    index = index.replace("%7B", "{").replace("%7D", "}")
    if urlsplit(index).scheme not in ("http", "https", "file"):
        raise BadIndex(f"{without_password(index)} is no index: give http://, https://, file:// or a folder")
    if not re.search(rf"/{PROJECT}/?$", index) and not index.startswith("file:"):
        index = index.rstrip("/") + f"/{PROJECT}"
    index = index.rstrip("/") + "/"
    if _PLACEHOLDER not in index:
        return [index]
    return [index.replace(_PLACEHOLDER, variant) for variant in dict.fromkeys(variants)]


def _fetched(address: str, web: Web, down: dict[str, Down]) -> Page | Path | Unreachable:
    folder = local_path(address)
    if folder is None:
        server = urlsplit(address).netloc
        if server in down:
            return down[server]
        try:
            return web.page(address)
        except Down as error:
            return down.setdefault(server, error)
        except Unreachable as error:
            return error
    for page in (folder / PROJECT / "index.html", folder / "index.html"):
        try:
            if page.is_file():
                return Page(page.as_uri(), "text/html", page.read_bytes())
        except OSError as error:
            return Unreachable(f"{page} cannot be read ({error})")
    if not folder.is_dir():
        return Absent(f"{folder} is no folder")
    return folder


def _listing(address: str, fetched: Page | Path | Unreachable) -> Listing:
    listing = Listing(without_password(address))
    if isinstance(fetched, Unreachable):
        listing.failure, listing.absent = str(fetched), isinstance(fetched, Absent)
        return listing
    try:
        if isinstance(fetched, Path):
            _read_folder(fetched, listing)
        else:
            _read_page(fetched, listing)
    except (BadIndex, OSError) as error:
        listing.failure = str(error)
    return listing


def _read_folder(folder: Path, listing: Listing) -> None:
    for path in sorted([*folder.glob("*.whl"), *folder.glob(f"{PROJECT}/*.whl")]):
        _put(listing, partial(_link, path.name, path.absolute().as_uri(), {}))
    if not listing.links:
        raise BadIndex(f"{folder} has no wheel of {PROJECT}" + _also(listing))


def _read_page(page: Page, listing: Listing) -> None:
    from pypi_simple import UnsupportedRepoVersionError

    try:
        found = _of_json(page) if "json" in page.content_type else _of_html(page)
    except (AssertionError, RecursionError, UnsupportedRepoVersionError, ValueError) as error:
        text = " ".join(str(error).split())[:200]
        raise BadIndex(
            f"{listing.index} is no index that can be read ({type(error).__name__}: {text})"
        ) from error
    for text, url, facts in found:
        _put(listing, partial(_page_link, page.url, text, url, facts))
    if not listing.links:
        start = page.body[:60].decode(errors="replace").strip()
        raise BadIndex(
            f"{listing.index} lists no wheel of {PROJECT}; it begins with {start!r}" + _also(listing)
        )


def _of_json(page: Page) -> list[tuple[str, str, dict[str, Any]]]:
    """(name, URL, facts) of each file of a PEP 691 page."""
    from pypi_simple import ProjectPage

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a newer minor version of the format
        packages = ProjectPage.from_json_data(json.loads(page.body), page.url).packages
    return [
        (
            package.filename,
            package.url,
            {
                "size_bytes": package.size,
                "sha256": package.digests.get("sha256"),
                "metadata_sha256": (package.metadata_digests or {}).get("sha256"),
                "uploaded_milliseconds": package.upload_time,
            },
        )
        for package in packages
    ]


def _of_html(page: Page) -> list[tuple[str, str, dict[str, Any]]]:
    """The same of a PEP 503 page. PyTorch's say when a file was uploaded, for which PEP 503 has no name."""
    found = []
    for anchor in anchors(page.body, page.url):
        url, _, fragment = anchor.url.partition("#")
        told = anchor.attributes
        metadata = told.get("data-core-metadata") or told.get("data-dist-info-metadata") or ""
        facts = {
            "sha256": fragment.removeprefix("sha256="),
            "metadata_sha256": metadata.removeprefix("sha256="),
            "uploaded_milliseconds": told.get("data-upload-time"),
        }
        found.append((anchor.text, url, facts))
    return found


def _put(listing: Listing, make: Callable[[], Link | None]) -> None:
    try:
        link = make()
    except (NotAWheel, ValueError) as error:
        listing.problems.append(str(error))
        return
    if link is not None:
        listing.links.append(link)


def _page_link(page_url: str, text: str, url: str, facts: Mapping[str, Any]) -> Link | None:
    target = unquote(urlsplit(url).path.rpartition("/")[2])
    if not (text.endswith(".whl") or target.endswith(".whl")):
        return None  # a source archive, or a link that a page has for people
    if text.endswith(".whl") and text != target:
        raise NotAWheel(f"a link called {text[:200]!r} leads to {without_password(url)[:300]!r}; skipped")
    ours, theirs = urlsplit(page_url).scheme, urlsplit(url).scheme
    if {"file": 0, "http": 1, "https": 2}.get(theirs, -1) < {"http": 1, "https": 2}.get(ours, 0):
        raise NotAWheel(f"an index by {ours} links to {without_password(url)[:300]!r}; skipped")
    return _link(target, url, facts)


def _link(file_name: str, url: str, facts: Mapping[str, Any]) -> Link:
    version, variant, macos = named(file_name)
    if variant == DEFAULT_VARIANT:
        # Old wheels do not name their variant, but lie in its folder; those for macOS lie everywhere.
        folders = [part for part in urlsplit(url).path.split("/")[:-1] if _VARIANT_FOLDER.fullmatch(part)]
        variant = "cpu" if macos else folders[-1] if folders else DEFAULT_VARIANT
    parts = urlsplit(without_password(url))
    folder = parts.path.rpartition("/")[0]
    # Spelled one way, whether a page writes `+` or `%2B`: a place is known by its URL.
    link = Link(
        file_name,
        urlunsplit(parts._replace(path=f"{folder}/{quote(file_name)}", fragment="")),
        version,
        variant,
    )
    size = facts.get("size_bytes")
    path = local_path(link.url)
    if path is not None:
        if not path.is_file():
            raise NotAWheel(f"{path} is not there, though an index lists it")
        size = path.stat().st_size
    sha256, metadata = (str(facts.get(name) or "").lower() for name in ("sha256", "metadata_sha256"))
    return replace(
        link,
        size_bytes=size if isinstance(size, int) and 0 < size <= LARGEST_WHEEL_BYTES else None,
        sha256=sha256 if _SHA256.fullmatch(sha256) else None,
        metadata_sha256=metadata if _SHA256.fullmatch(metadata) else None,
        uploaded_milliseconds=_milliseconds(facts.get("uploaded_milliseconds")),
    )


def _milliseconds(time: object) -> int | None:
    if isinstance(time, str):
        try:
            time = datetime.fromisoformat(time.strip().replace("Z", "+00:00"))
        except ValueError:
            return None
    if not isinstance(time, datetime):
        return None
    if time.tzinfo is None:
        time = time.replace(tzinfo=timezone.utc)
    return int(time.timestamp() * 1000)


def _also(listing: Listing) -> str:
    return f"; {listing.problems[0]}" if listing.problems else ""
