"""`podium` and its subcommands. A heavy module is imported by the command that needs it."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

import click

import podium
from podium.cli import command_errors, interrupts, streams
from podium.cli.groups import CommandGroup
from podium.cli.output import lines_of
from podium.lib import garbage_collection
from podium.lib.printable import printable


@contextmanager
def _errors_escaped() -> Iterator[None]:
    """Escape text that errors quote, so that it can neither control the terminal nor pass for podium's own lines."""
    try:
        yield
    except click.ClickException as error:
        from podium.lib.log_text import without_user_info

        # `message` is final only for type checkers. An exception of another class would be shown in another format.
        vars(error)["message"] = "\n".join(printable(without_user_info(line)) for line in lines_of(error))
        raise


SECTIONS: Final[Mapping[str, Sequence[str]]] = {
    "Run": ("run", "shadow", "record", "provisioner", "estimator"),
    "Ask": (
        *("why", "evaluate", "what-if", "outlook", "capacity", "make-room"),
        *("plan", "consolidate"),
        *("estimate", "divide", "clusters", "mcp"),
    ),
    "Study": ("replay", "diff", "sweep"),
    "Check": ("config", "doctor", "shards", "release", "version"),
    "Try": ("demo", "sandbox", "completion"),
}
"""The commands by what they are for."""

_SENTENCE_MAX: Final = 200


class _Commands(CommandGroup):
    """A group whose subcommands are imported on use, so that `podium config check` does not load an HTTP stack."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """List the names of all commands, section by section."""
        del ctx
        return [name for names in SECTIONS.values() for name in names]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write what each command does, in a sentence, below the heading of its section."""
        for title, names in SECTIONS.items():
            commands = {name: self.get_command(ctx, name) for name in names}
            # click's own list cuts sentences off after 45 characters.
            with formatter.section(title):
                formatter.write_dl(
                    [(name, command.get_short_help_str(_SENTENCE_MAX)) for name, command in commands.items() if command]
                )

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return the command of that name."""
        if cmd_name not in self.list_commands(ctx):
            return None
        with garbage_collection.collection_disabled(), interrupts.exit_130_at_once():
            module = __import__(f"podium.cli.{cmd_name.replace('-', '_')}", fromlist=["command"])
        command: click.Command = module.command
        return command

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        """Parse the options before the command's name."""
        with interrupts.exit_130_if_interrupted(), _errors_escaped():
            return super().make_context(info_name, args, parent, **extra)

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command."""
        with interrupts.exit_130_if_interrupted(), _errors_escaped():
            return super().invoke(ctx)

    def main(self, *args: Any, **extra: Any) -> Any:
        """Run click's `main`, and report an unexpected end of a command in one line."""
        streams.reopen_closed()
        streams.write_any_text()
        sys.excepthook = command_errors.show_traceback
        with command_errors.report_fatal_errors():
            return super().main(*args, **extra)


@click.command(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(podium.__version__, prog_name="podium")
def main() -> None:
    """Schedule Kubernetes pods as kube-scheduler does, with your policy in one Python file."""
