"""Wheels that call themselves torch, hold a few lines of Python, and install in a moment."""

import base64
import hashlib
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from packaging import tags

from accel_micro.builds import Place, Wheel, identify
from accel_micro.builds.interpreters import find_interpreter

GIT = "a" * 40
HERE = find_interpreter()


def write_wheel(
    folder: Path,
    version: str = "2.15.0.dev20261105+cpu",
    *,
    requires: Sequence[str] = (),
    says: str | None = None,
    init: str = "from torch.version import __version__, git_version\n",
    git: str = GIT,
    tag: str | None = None,
    more: Mapping[str, bytes] | None = None,
) -> Path:
    """Write one and return its path; `says` is what it calls itself, else the version in its name."""
    tag = tag or f"{HERE.tag.removesuffix('t')}-{HERE.tag}-{platform_tag()}"
    info = f"torch-{version}.dist-info"
    metadata = f"Metadata-Version: 2.1\nName: torch\nVersion: {version}\n"
    constants = {"__version__": says or version, "git_version": git, "cuda": None, "hip": None}
    files: dict[str, bytes] = {
        "torch/__init__.py": init.encode(),
        "torch/version.py": "".join(f"{name} = {value!r}\n" for name, value in constants.items()).encode(),
        f"{info}/METADATA": (metadata + "".join(f"Requires-Dist: {line}\n" for line in requires)).encode(),
        f"{info}/WHEEL": f"Wheel-Version: 1.0\nRoot-Is-Purelib: false\nTag: {tag}\n".encode(),
        **(more or {}),
    }
    record = "".join(f"{name},sha256={_digest(content)},{len(content)}\n" for name, content in files.items())
    files[f"{info}/RECORD"] = f"{record}{info}/RECORD,,\n".encode()
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"torch-{version}-{tag}.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return path


def wheel_of(
    path: Path, *, url: str | None = None, sha256: str | None = None, git: str | None = None
) -> Wheel:
    """What a ledger would know of a wheel that lies in a folder."""
    version = path.name.split("-")[1]
    place = Place(url or path.as_uri(), path.parent.as_uri() + "/")
    return Wheel(
        build_id=identify(version).id,
        version=version,
        file_name=path.name,
        variant="cpu",
        places=(place,),
        size_bytes=path.stat().st_size,
        sha256=sha256,
        git_version=git,
    )


def platform_tag() -> str:
    """The plainest platform of a wheel that runs here."""
    return list(tags.platform_tags())[-1]


def _digest(content: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
