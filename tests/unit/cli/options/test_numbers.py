"""Numbers between limits, as options."""

from __future__ import annotations

import click
import pytest
from click.testing import CliRunner

from podium.cli.main import main
from podium.cli.options.numbers import NumberRange


def test_a_number_within_the_limits_is_taken() -> None:
    assert NumberRange(min=0).convert("2.5", None, None) == 2.5


@pytest.mark.parametrize("text", ["-1", "nan", "much"])
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(click.BadParameter):
        NumberRange(min=0).convert(text, None, None)


@pytest.mark.parametrize("asked", ["consolidate --min-savings", "replay x --speed", "demo --timeout"])
def test_no_option_takes_what_is_no_number(asked: str) -> None:
    result = CliRunner().invoke(main, [*asked.split(), "nan"])
    assert (result.exit_code, "is not a number" in result.stderr) == (2, True)
