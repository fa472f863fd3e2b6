"""The options `--logging-format` and `-v` of every command that serves: log format and verbosity."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any

import click

from podium.cli.exit_codes import EXIT_FAILED
from podium.cli.output import lines_of
from podium.lib.log import get_logger

if TYPE_CHECKING:
    from podium.telemetry.logging import Form

log = get_logger("cli")

_REPORTED_ELSEWHERE = (click.exceptions.Exit, click.Abort, MemoryError, RecursionError, OSError)
"""Exceptions that are not errors, or that `command_errors` reports in one line."""
_FORMS: dict[str | None, Form | None] = {"json": "json", "text": "console", None: None}


def logging_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Set up logging from these options before the command begins. The command does not receive them.

    If the log is JSON, the error that ends the command is written as a log line.
    """

    @click.option(
        "--logging-format",
        type=click.Choice(["json", "text"]),
        help="The format of the log. By default text on a terminal, and json otherwise.",
    )
    @click.option(
        "-v", "--v", "verbosity", type=click.IntRange(0, 10), default=2, show_default=True, help="How much to log."
    )
    @wraps(command)
    def logging_first(*args: Any, logging_format: str | None, verbosity: int, **options: Any) -> Any:
        from podium.telemetry import configure_logging, flush_log

        form = configure_logging(form=_FORMS[logging_format], verbosity=verbosity)
        try:
            return command(*args, **options)
        except click.ClickException as error:
            if form == "json" and not isinstance(error, click.UsageError):
                for line in lines_of(error):
                    log.critical("Fatal error", error=line)
                flush_log()
                raise SystemExit(error.exit_code) from error
            if not flush_log():
                # click would write the error to the same stream, and block for ever if its reader has stopped.
                raise SystemExit(error.exit_code) from error
            raise
        except _REPORTED_ELSEWHERE:
            raise
        except Exception as error:
            # The interpreter would write to the stream itself: before the queued lines, and blocking on its reader.
            log.critical("Unexpected error, exiting", exc_info=error)
            flush_log()
            raise SystemExit(EXIT_FAILED) from error

    return logging_first
