"""How a command that serves ends when it cannot go on."""

from __future__ import annotations

import json
from typing import Any

import click
import pytest
from click.testing import CliRunner

from podium import telemetry
from podium.cli.options.logs import logging_options


def ending(error: BaseException) -> click.Command:
    """A command that ends so."""

    @click.command()
    @logging_options
    def serve() -> None:
        raise error

    return serve


def run(error: BaseException, *arguments: str) -> Any:
    return CliRunner().invoke(ending(error), arguments)


def test_an_unexpected_error_is_a_line_of_the_log() -> None:
    result = run(RuntimeError("boom"))
    assert result.exit_code == 1
    entry = json.loads(result.output)
    assert (entry["level"], entry["msg"]) == ("critical", "Unexpected error, exiting")
    assert "RuntimeError: boom" in entry["exception"]


@pytest.mark.parametrize("error", [click.ClickException("no"), RuntimeError("boom")])
def test_who_does_not_read_the_log_does_not_hold_up_the_end(
    error: BaseException, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(telemetry, "flush_log", lambda: False)
    result = run(error, "--logging-format", "text")
    assert result.exit_code == 1
    assert "Error: no" not in result.output


def test_an_error_with_a_text_for_the_reader_is_shown_after_the_log() -> None:
    result = run(click.ClickException("no server"), "--logging-format", "text")
    assert (result.exit_code, result.output) == (1, "Error: no server\n")


def test_a_regular_end_is_none_of_these() -> None:
    assert run(click.exceptions.Exit(0)).exit_code == 0
