import subprocess
import sys

import pytest
from click.testing import CliRunner

import podium
from podium.cli.main import main


def test_every_command_is_listed_and_explains_itself() -> None:
    result = CliRunner().invoke(main, ["--help"])
    assert result.exit_code == 0
    for command in ("config", "demo", "evaluate", "run", "sandbox"):
        assert f"\n  {command} " in result.output
        assert CliRunner().invoke(main, [command, "--help"]).exit_code == 0


def test_the_version_is_told() -> None:
    assert CliRunner().invoke(main, ["--version"]).output == f"podium, version {podium.__version__}\n"


@pytest.mark.parametrize("name", ["nothing", "main", "configuration", "../run"])
def test_what_is_no_command_is_a_usage_error_even_if_it_is_a_module(name: str) -> None:
    result = CliRunner().invoke(main, [name])
    assert result.exit_code == 2
    assert f"No such command '{name}'" in result.output


def test_checking_a_configuration_loads_no_http_stack() -> None:
    code = (
        "import sys\n"
        "from podium.cli.main import main\n"
        "main(['config', 'defaults'], standalone_mode=False)\n"
        "print(sorted({'aiohttp', 'uvloop', 'kubernetes_asyncio', 'cryptography'} & set(sys.modules)), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr.strip() == "[]"
