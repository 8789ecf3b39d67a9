"""The command line. Thin: a command imports what it needs when it runs, so that `--help` answers at once."""

from enum import Enum
from typing import Annotated

import typer

app = typer.Typer(
    name="accel-micro",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


class Format(str, Enum):
    """How a report is written."""

    text = "text"
    json = "json"


@app.callback()
def accel_micro() -> None:
    """Trustworthy microbenchmarks of PyTorch ops on every accelerator."""


@app.command()
def doctor(
    format: Annotated[Format, typer.Option(help="For people or for programs.")] = Format.text,
    interval: Annotated[float, typer.Option(min=0.01, help="Seconds to watch what else runs.")] = 1.0,
) -> None:
    """Say what this machine is, and what about it would spoil timings.

    Exits with 0, or with 3 when a problem makes timings meaningless.
    """
    from accel_micro import doctor

    facts, torch_facts = doctor.examine(interval)
    findings = doctor.diagnose(facts, torch_facts)
    if format is Format.json:
        import json

        typer.echo(json.dumps(doctor.to_json(facts, torch_facts, findings), indent=2))
    else:
        from rich.console import Console

        doctor.render(facts, torch_facts, findings, Console(highlight=False))
    raise typer.Exit(doctor.exit_code(findings))


def main() -> None:
    """Run the command line; leaves with 0 done, 2 wrong use, or 3 the environment cannot do it."""
    app()
