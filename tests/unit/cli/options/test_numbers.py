import pytest

from tests.unit.cli.commands import run


@pytest.mark.parametrize("command", [("demo", "--timeout"), ("consolidate", "--min-savings"), ("replay", "--speed")])
@pytest.mark.parametrize("number", ["nan", "inf", "1e999"])
def test_a_number_has_to_be_finite(command, number):
    result = run(*command, number)
    assert result.exit_code == 2
    assert f"'{number}' is not a finite number." in result.stderr
