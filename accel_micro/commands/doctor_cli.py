"""`accel-micro doctor`: its options. Thin; imports happen when the command runs."""

from enum import Enum
from typing import TYPE_CHECKING, Annotated

import typer

from accel_micro.commands.common import ENVIRONMENT, WRONG_USE, print_json, say_error, stdout

if TYPE_CHECKING:
    from accel_micro.doctor.sync import Audit


class Format(str, Enum):
    """How facts are written."""

    text = "text"
    json = "json"


def doctor(
    format: Annotated[Format, typer.Option(help="For people or for programs.")] = Format.text,
    interval: Annotated[
        float, typer.Option(min=0.01, metavar="SECONDS", help="How long to watch what else runs.")
    ] = 1.0,
    sync: Annotated[
        bool,
        typer.Option(
            "--sync", help="Audit the synchronisation instead: what stopwatches read here that wait wrongly."
        ),
    ] = False,
    device: Annotated[
        list[str] | None,
        typer.Option(
            help="Only what matters to runs on this device, such as cuda:1. With --sync the device to audit, "
            "repeatable; else the CPU and each accelerator here."
        ),
    ] = None,
) -> None:
    """Say what this machine is, and what about it would spoil timings.

    With --sync work of known length is timed with ours, without a sync, with that of torch.utils.benchmark, and with
    the mistakes of other harnesses; each with what it read, and how wrong that is.

    Exits with 0; with 3 when a problem makes timings meaningless, or when --sync finds that ours is wrong somewhere.
    """
    if sync:
        _audit(device or [], format)
    if device and len(device) > 1:
        say_error("without --sync one --device is looked at")
        raise typer.Exit(WRONG_USE)
    from accel_micro import doctor

    facts, torch_facts = doctor.examine(interval)
    if device:
        from accel_micro.devices import DeviceUnavailable, UnknownDevice
        from accel_micro.doctor.one_device import only

        try:
            facts = only(facts, device[0])
        except UnknownDevice as error:
            say_error(str(error))
            raise typer.Exit(WRONG_USE) from None
        except DeviceUnavailable as error:
            say_error(str(error))
            raise typer.Exit(ENVIRONMENT) from None
    findings = doctor.diagnose(facts, torch_facts)
    if format is Format.json:
        print_json(doctor.to_json(facts, torch_facts, findings))
    else:
        doctor.render(facts, torch_facts, findings, stdout())
    raise typer.Exit(doctor.exit_code(findings))


def _audit(names: list[str], format: Format) -> None:
    """Audit these devices, or all that are here, and leave.

    Raises:
        typer.Exit: always.
    """
    from accel_micro import devices
    from accel_micro.doctor import sync

    try:
        for name in names:
            devices.get(name)
    except devices.UnknownDevice as error:
        say_error(str(error))
        raise typer.Exit(WRONG_USE) from None
    chosen = names or [name for name, facts in devices.available().items() if facts["unavailable"] is None]
    audits: list[Audit] = []
    for name in dict.fromkeys(chosen):
        audits += _audits_of(name)
    if format is Format.json:
        print_json(sync.to_json(audits))
    else:
        sync.render(audits, stdout())
    raise typer.Exit(sync.exit_code(audits))


def _audits_of(name: str) -> "list[Audit]":
    from accel_micro.devices import DeviceUnavailable
    from accel_micro.doctor import sync
    from accel_micro.measure.sampling import opened

    try:
        with opened(name) as device:
            return sync.audit(device)
    except DeviceUnavailable as reason:
        say_error(f"{name}: {reason}")
        raise typer.Exit(ENVIRONMENT) from None
