"""How the help of a command reads: plain text as wide as the terminal, a word for what an option takes, examples.

Without typer's panels of rich: at 80 columns these leave half of the width to the text, and loading rich takes longer
than all else that `--help` does.
"""

from typing import Any, Final

from typer.core import TyperCommand, TyperGroup

WIDEST: Final = 120
"""Columns of the widest help; a terminal that is narrower gets what fits."""


class Command(TyperCommand):
    """A command whose epilog holds its examples, a line each."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """`[OPTIONS]`, then the arguments as the texts call them."""
        return [self.options_metavar or "", *(_usage(param) for param in _arguments(self))]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Arguments, then options."""
        write_parameters(self, ctx, formatter)

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """The examples, to be copied: none is wrapped."""
        if self.epilog:
            with formatter.section("Examples"):
                for line in self.epilog.splitlines():
                    formatter.write(f"{'':>{formatter.current_indent}}{line}\n")


class Group(TyperGroup):
    """A command with others below it, which are listed by what they are for, each with its whole sentence."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """The commands below the heading of their kind, headings and commands in the order in which they were added."""
        shown = [command for command in self.commands.values() if not command.hidden]
        widest = max((len(command.name or "") for command in shown), default=0)
        for heading in dict.fromkeys(_heading(each) for each in shown):
            below = [each for each in shown if _heading(each) == heading]
            with formatter.section(heading):
                formatter.write_dl([(f"{each.name:<{widest}}", _summary(each)) for each in below])


def write_parameters(command: Any, ctx: Any, formatter: Any) -> None:
    """Arguments and options of a command, each section where there are any."""
    if arguments := [(_name(each), each.get_help_record(ctx)[1]) for each in _arguments(command)]:
        with formatter.section("Arguments"):
            formatter.write_dl(arguments)
    shown = [each for each in command.get_params(ctx) if each.param_type_name == "option" and not each.hidden]
    with formatter.section("Options"):
        formatter.write_dl([_option(each, ctx) for each in shown])


def _option(option: Any, ctx: Any) -> tuple[str, str]:
    """How it is written, and its sentence. What it takes is called as the option is: MACHINE rather than `<str>`."""
    written, sentence = option.get_help_record(ctx)
    if option.metavar is None and not option.is_flag and "|" not in written:
        written = f"{', '.join(sorted(option.opts, key=len))} {option.name.upper()}"
    return written, sentence


def _arguments(command: Any) -> list[Any]:
    return [each for each in command.params if each.param_type_name == "argument"]


def _name(parameter: Any) -> str:
    return str(parameter.metavar or parameter.name.upper())


def _usage(argument: Any) -> str:
    name = _name(argument) + ("..." if argument.nargs != 1 else "")
    return name if argument.required else f"[{name}]"


def _heading(command: Any) -> str:
    return getattr(command, "rich_help_panel", None) or "Commands"


def _summary(command: Any) -> str:
    """The first paragraph of its help, on one line."""
    return " ".join((command.help or "").partition("\n\n")[0].split())
