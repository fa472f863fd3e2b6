import json
import platform

from click.testing import CliRunner

import podium
from podium.cli.main import main


def test_version_and_python_are_printed_for_people_and_programs() -> None:
    answer = json.loads(CliRunner().invoke(main, ["version", "-o", "json"]).output)
    assert (answer["version"], answer["python"]) == (podium.__version__, platform.python_version())
    output = CliRunner().invoke(main, ["version"]).output
    assert f"version:  {podium.__version__}\n" in output


def test_without_a_repository_and_a_build_no_commit_is_claimed(tmp_path, monkeypatch) -> None:
    (tmp_path / "podium").mkdir()
    monkeypatch.setattr(podium, "__file__", str(tmp_path / "podium" / "__init__.py"))
    assert "commit" not in json.loads(CliRunner().invoke(main, ["version", "-o", "json"]).output)
