import json

import pytest
from click.testing import CliRunner

from podium.cli.main import main


@pytest.mark.parametrize(
    ("flags", "text"),
    [
        ((), "give member clusters"),
        (
            ("--cases", "/dev/null", "--cluster-name", "m1", "--context", "a", "--context", "b"),
            "needs a single --context",
        ),
        (("--kubeconfig-dir", "/no/such/folder"), "/no/such/folder: No such file or directory"),
        (("--kubeconfig", "/no/such/file"), "/no/such/file: No such file or directory"),
        (
            ("--health-probe-bind-address", ":99999"),
            "'--health-probe-bind-address': ':99999' does not end in a colon and a port",
        ),
        (
            ("--metrics-bind-address", "localhost"),
            "'--metrics-bind-address': 'localhost' does not end in a colon and a port",
        ),
        (("--metrics-bind-address", "8080"), "'--metrics-bind-address': '8080' does not end in a colon and a port"),
        (("--cases", "/dev/null", "--feature-gates", "Nothing=true"), "unknown gate 'Nothing'"),
        (
            ("--kubeconfig-dir", "/", "--cluster-name", "m1"),
            "--kubeconfig-dir cannot be combined with --kubeconfig, --context, --cluster-name or --master",
        ),
        (
            ("--kubeconfig-dir", "/", "--master", "http://[::1]:1"),
            "--kubeconfig-dir cannot be combined with --kubeconfig, --context, --cluster-name or --master",
        ),
        (
            (
                "--cluster-name",
                "m1",
                "--master",
                "http://[::1]:1",
                *("--grpc-auth-cert-file", "/a"),
                *("--grpc-auth-key-file", "/b"),
            ),
            "/a: No such file or directory",
        ),
    ],
)
def test_mistake_is_named(flags, text):
    result = CliRunner().invoke(main, ["estimator", "serve", *flags], catch_exceptions=False)
    assert result.exit_code != 0
    assert text in " ".join(result.output.split())


@pytest.mark.parametrize("flag", ["--kube-api-qps", "--kube-api-burst", "--parallelism"])
def test_flag_of_upstreams_that_means_nothing_here_is_taken_and_said_to_have_no_effect(flag):
    result = CliRunner().invoke(main, ["estimator", "serve", "--logging-format", "json", flag, "40"])
    assert "give member clusters" in result.output
    first = json.loads(result.stderr.splitlines()[0])
    assert (first["level"], first["msg"], first["flag"]) == ("warning", "Flag has no effect", flag)


def test_cases_and_a_running_cluster_do_not_go_together(tmp_path):
    path = tmp_path / "cases.jsonl"
    path.write_text(json.dumps({"id": "m1"}))
    result = CliRunner().invoke(main, ["estimator", "serve", "--cases", str(path), "--cluster-name", "m2"])
    assert "--kubeconfig-dir, or --cases" in result.output


@pytest.mark.parametrize(
    ("content", "text"),
    [("a: [", "kubeconfig: line 2: did not find"), ("{}", "kubeconfig: it has no contexts")],
    ids=["torn", "empty"],
)
def test_kubeconfig_without_contexts_is_named(tmp_path, content, text):
    path = tmp_path / "kubeconfig"
    path.write_text(content)
    result = CliRunner().invoke(main, ["estimator", "serve", "--kubeconfig", str(path)])
    assert result.exit_code == 1
    assert text in " ".join(result.output.split())


def test_broken_case_is_named(tmp_path):
    path = tmp_path / "cases.jsonl"
    path.write_text("{")
    result = CliRunner().invoke(main, ["estimator", "serve", "--cases", str(path)])
    assert f"{path}:1: not a case" in " ".join(result.output.split())
