"""Where a configuration's builds come from, and which wheels its Pythons and this machine can take."""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from accel_micro.builds.index import SETTINGS, Settings, settings
from accel_micro.builds.interpreters import SAME, NoInterpreter, find_interpreter
from accel_micro.builds.variants import Variants, chosen
from accel_micro.builds.wheels import Target

if TYPE_CHECKING:
    from accel_micro.builds import Ledger
    from accel_micro.builds.commits import Nightlies
    from accel_micro.builds.sync import Synced


@dataclass(frozen=True)
class Sources:
    """What to look for, and where.

    Attributes:
        indexes: addresses, in order.
        variants: of torch, the best first, and why.
        targets: one for each Python of the configuration.
        otherwise: index for when those are out of reach, None where somebody chose the indexes.
    """

    indexes: tuple[str, ...]
    variants: Variants
    targets: tuple[Target, ...]
    otherwise: str | None = None

    def sync(
        self,
        ledger: "Ledger",
        *,
        commits: bool = True,
        nightlies: "Nightlies | None" = None,
        accept: Iterable[str] = (),
        dry_run: bool = False,
        progress: Callable[[int, int], None] = lambda done, total: None,
    ) -> "Synced":
        """Note in a ledger what these indexes list now; `builds.sync.sync` says what the arguments mean.

        Raises:
            BadIndex: an address is no index.
            OSError: the ledger cannot be written.
        """
        from accel_micro.builds.sync import sync
        from accel_micro.builds.web import Web

        with Web() as web:
            return sync(
                ledger,
                self.indexes,
                self.targets,
                web,
                otherwise=self.otherwise,
                commits=commits,
                nightlies=nightlies,
                accept=accept,
                dry_run=dry_run,
                progress=progress,
            )


def find_sources(
    conf: Any,
    *,
    base: Path | None = None,
    indexes: Sequence[str] = (),
    variant: str | None = None,
    pythons: Sequence[str] = (),
    environ: Mapping[str, str] = os.environ,
) -> Sources:
    """What a configuration, the environment's variables and these arguments say; the arguments win.

    Args:
        conf: asv's configuration object.
        base: folder of its file, the current one by default; asv itself works there.
        pythons: as asv's `pythons`: `same`, versions or paths.

    Raises:
        BadIndex: the configuration says something that is no address.
        NoInterpreter: there is no such Python here.
    """
    found: Settings = settings(getattr(conf, SETTINGS, None), environ, base or Path.cwd())
    if variant:
        found = replace(found, variant=variant)
    variants = chosen(found.variant)
    names = tuple(pythons) or tuple(conf.pythons) or (SAME,)
    targets = [Target.here(variants.names, _version(name)) for name in dict.fromkeys(names)]
    return Sources(
        tuple(indexes) or found.indexes,
        variants,
        tuple(dict.fromkeys(targets)),
        None if indexes else found.otherwise,
    )


def _version(name: str) -> str | None:
    if name == SAME:
        return None
    try:
        Target.here(python=name)
    except ValueError:
        return find_interpreter(name).python
    return name  # a version says all that choosing wheels needs


__all__ = ["NoInterpreter", "Sources", "find_sources"]
