import subprocess
import sys
import tomllib
from pathlib import Path

import click
import msgspec
import pytest
from click.testing import CliRunner

import podium
from podium.cli.command_errors import show_traceback
from podium.cli.main import main
from tests.manifests import node, pod


def test_every_command_is_listed_and_explains_itself() -> None:
    result = CliRunner().invoke(main, ["--help"])
    assert result.exit_code == 0
    for command in ("completion", "config", "demo", "evaluate", "run", "sandbox", "version"):
        assert f"\n  {command} " in result.output
        assert CliRunner().invoke(main, [command, "--help"]).exit_code == 0


def test_commands_are_listed_by_what_they_are_for_in_whole_sentences() -> None:
    output = CliRunner().invoke(main, ["--help"], terminal_width=200, max_content_width=200).output
    headings = [line.rstrip(":") for line in output.splitlines() if line.endswith(":")]
    assert headings == ["Options", "Run", "Ask", "Study", "Check", "Try"]
    rows = output.partition("\nRun:\n")[2].splitlines()
    assert not [line for line in rows if line.startswith("  ") and not line.endswith(".")]


def test_the_version_is_printed() -> None:
    assert CliRunner().invoke(main, ["--version"]).output == f"podium, version {podium.__version__}\n"


def test_every_command_is_one_of_kubectls_too() -> None:
    scripts = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text())["project"]["scripts"]
    assert scripts == dict.fromkeys(("podium", "kubectl-podium"), "podium.cli.main:main")


@pytest.mark.parametrize("name", ["nothing", "main", "configuration", "../run"])
def test_what_is_no_command_is_a_usage_error_even_if_it_is_a_module(name: str) -> None:
    result = CliRunner().invoke(main, [name])
    assert result.exit_code == 2
    assert f"No such command '{name}'" in result.output


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["evaluat"], "No such command 'evaluat'; did you mean evaluate"),
        (["config", "chek"], "No such command 'chek'; did you mean check?"),
        (["what_if"], "No such command 'what_if'; did you mean what-if?"),
        (["zzz"], "No such command 'zzz'."),
    ],
)
def test_a_command_that_is_misspelt_is_suggested(names: list[str], message: str) -> None:
    result = CliRunner().invoke(main, names)
    assert result.exit_code == 2
    assert f"Error: {message}" in result.output


@pytest.mark.long
def test_help_loads_no_scheduler_and_a_question_about_files_no_http_stack(tmp_path: Path) -> None:
    """Imports take most of the time of a short command."""
    cluster = tmp_path / "cluster.json"
    cluster.write_bytes(msgspec.json.encode({"apiVersion": "v1", "kind": "List", "items": [node("n1"), pod("web")]}))
    code = (
        "import sys\n"
        "from podium.cli.main import main\n"
        "main(['--help'], standalone_mode=False)\n"
        "scheduler = {'numpy', 'structlog', 'prometheus_client', 'podium.framework', 'podium.telemetry'}\n"
        "print(sorted(scheduler & set(sys.modules)), file=sys.stderr)\n"
        "main(['config', 'defaults'], standalone_mode=False)\n"
        f"main(['why', 'web', '-f', {str(cluster)!r}], standalone_mode=False)\n"
        "io = {'aiohttp', 'uvloop', 'kubernetes_asyncio', 'cryptography', 'asyncio', 'podium.client'}\n"
        "print(sorted(io & set(sys.modules)), file=sys.stderr)"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert [line for line in result.stderr.splitlines() if line.startswith("[")] == ["[]", "[]"]


def _answering(command, name=""):
    """The commands that have `--output`, and those that have none, each by its name."""
    if isinstance(command, click.Group):
        for list_command in command.list_commands(click.Context(command)):
            below = command.get_command(click.Context(command), list_command)
            assert below is not None
            yield from _answering(below, f"{name} {list_command}".strip())
    else:
        yield name, next((param for param in command.params if param.name == "output"), None)


def test_every_command_that_answers_has_the_same_formats_under_the_same_option():
    options = dict(_answering(main))
    assert {name for name, option in options.items() if option is None} == {
        "clusters serve",
        "completion",
        "estimator serve",
        "mcp",
        "provisioner run",
        "record",
        "run",
        "sandbox",
    }
    for name, option in options.items():
        if option is not None:
            assert option.opts == ["-o", "--output"], name
            assert list(option.type.choices) == ["text", "json", "yaml"], name
            assert option.type.convert("table", option, None) == "text"
            assert option.type.convert("jsonl", option, None) == "json"


def test_what_an_error_quotes_is_not_obeyed_by_the_terminal() -> None:
    for file in ("\x1b[2J", "\x9b2J\u202e"):
        result = CliRunner().invoke(main, ["evaluate", "-f", "cluster.yaml", "--pod", f"/no/such/{file}"])
        assert result.exit_code != 0
        assert f"/no/such/{file.encode('unicode_escape').decode()}" in result.output
        assert file not in result.output


def test_an_interrupt_anywhere_in_a_command_is_130_without_a_word(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("podium.cli.demo.main._check_sizes", interrupt)
    result = CliRunner().invoke(main, ["demo"])
    assert (result.exit_code, result.output) == (130, "")


def test_an_interrupt_is_no_defect(capsys: pytest.CaptureFixture[str]) -> None:
    show_traceback(KeyboardInterrupt, KeyboardInterrupt(), None)
    assert capsys.readouterr() == ("", "")
