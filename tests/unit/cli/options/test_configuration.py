from pathlib import Path

import pytest

from podium.cli.options.configuration import BadConfiguration, usable
from podium.config import RELEASES


def test_without_a_file_the_defaults_can_be_run() -> None:
    good = usable(None)
    assert [profile.scheduler_name for profile in good.config.profiles] == ["default-scheduler"]
    assert good.config.leader_election.leader_elect


def test_a_missing_file_is_named() -> None:
    with pytest.raises(BadConfiguration, match=r"nowhere\.yaml: No such file"):
        usable(Path("nowhere.yaml"))


def test_a_plugin_that_cannot_be_had_is_named() -> None:
    with pytest.raises(BadConfiguration, match=r"there is no file nowhere\.py"):
        usable(None, ["nowhere.py:Any"])


def test_what_podium_cannot_do_is_refused_by_its_field(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
        "leaderElection: {retryPeriod: 9s}\n"
    )
    with pytest.raises(BadConfiguration, match="renewDeadline: Forbidden"):
        usable(path)


def test_extenders_may_be_run_but_not_asked_questions_about(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
        "extenders: [{urlPrefix: 'http://127.0.0.1/', filterVerb: filter}]\n"
    )
    assert len(usable(path).config.extenders) == 1
    with pytest.raises(BadConfiguration, match="extenders: Forbidden: extenders are not asked here"):
        usable(path, to_run=False)


def test_a_feature_gate_changes_what_the_defaults_run() -> None:
    enabled = (
        usable(None, (), ["NodeDeclaredFeatures=false"], release=RELEASES["1.36"])
        .config.profiles[0]
        .plugins.multi_point.enabled
    )
    assert "NodeDeclaredFeatures" not in [plugin.name for plugin in enabled]


def test_a_feature_gate_that_cannot_be_had_is_named() -> None:
    with pytest.raises(BadConfiguration, match="--feature-gates: unrecognized feature gate: Nothing"):
        usable(None, (), ["Nothing=true"])


def test_a_directory_is_named_as_what_it_is(tmp_path: Path) -> None:
    with pytest.raises(BadConfiguration, match=f"{tmp_path}: Is a directory"):
        usable(tmp_path)


@pytest.mark.parametrize("content", [b"\xff\xfe\x00", b"a: [", b"", b"- a", b"apiVersion: v1\nkind: Pod\n", b"\x00"])
def test_a_file_that_is_no_configuration_is_refused_by_its_name(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "config.yaml"
    path.write_bytes(content)
    with pytest.raises(BadConfiguration, match=str(path)):
        usable(path)


def test_every_error_is_a_line_of_its_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
        "parallelism: -1\npodMaxBackoffSeconds: x\n"
    )
    with pytest.raises(BadConfiguration) as error:
        usable(path)
    error.value.show()
    lines = capsys.readouterr().err.splitlines()
    assert [line.split(": ")[1] for line in lines] == ["parallelism", "podMaxBackoffSeconds"]
    assert error.value.exit_code == 1


def test_what_only_a_daemon_needs_does_not_keep_others_from_deciding() -> None:
    assert usable(None, to_run=False).warnings == ()
