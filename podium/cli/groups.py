"""A group of commands that suggests existing names for an unknown one."""

from __future__ import annotations

import click


class CommandGroup(click.Group):
    """A group of commands. A usage error about an unknown command names the most similar ones."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that the arguments name."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            from podium.lib.nearest import nearest

            suggestion = nearest(args[0], self.list_commands(ctx))
            if not suggestion:
                raise
            raise click.UsageError(error.message.rstrip(".") + suggestion, ctx) from None
