from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from podium import telemetry
from podium.cli import run
from podium.cli.main import main
from podium.cli.options.configuration import BadConfiguration
from podium.client.credentials import ConnectionConfigError
from podium.config import NEWEST, RELEASES, Release
from podium.daemon.app import App
from podium.daemon.options import Options, ReleaseOrigin
from podium.framework.contract.status import PluginError
from podium.server.access_options import AccessOptions
from podium.server.election import LeadershipLostError, LeaseTakenError
from podium.server.serving import CertificateError, ServingError
from podium.server.supervision import ComponentFailedError
from podium.server.tls_limits import TlsLimits
from podium.telemetry import configure_logging


class FakeDaemon:
    """Takes the place of the daemon; remembers what it was made with."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.options = Options()
        self.config: Any = None
        self.error: BaseException | None = None
        self.logging: dict[str, Any] = {}
        self.release = NEWEST
        self.connection: tuple[str | None, ...] = ()
        monkeypatch.setattr(App, "__init__", self._constructor)
        monkeypatch.setattr(App, "run", self._run)
        monkeypatch.setattr(telemetry, "configure_logging", self._configure)
        monkeypatch.setattr(run, "release_to_run", self._release)

    def _configure(self, **values: Any) -> str:
        self.logging.update(values)
        return configure_logging(**values)

    def _release(self, *connection: str | None, context: str | None) -> tuple[Release, ReleaseOrigin]:
        self.connection = (*connection, context)
        return self.release, ReleaseOrigin.SERVERS

    @property
    def _constructor(self) -> Callable[..., None]:
        def initialize(_: App, config: Any, options: Options, *, is_watched: bool) -> None:
            assert is_watched
            self.config, self.options = config, options

        return initialize

    @property
    def _run(self) -> Callable[..., Any]:
        async def run(_: App) -> None:
            if self.error is not None:
                raise self.error

        return run


@pytest.fixture
def daemon(monkeypatch: pytest.MonkeyPatch) -> FakeDaemon:
    return FakeDaemon(monkeypatch)


def invoke(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["run", *arguments])


def test_without_options_the_defaults_are_run(daemon: FakeDaemon) -> None:
    assert invoke().exit_code == 0
    options = daemon.options
    assert (options.bind_address, options.secure_port, options.pod_max_in_unschedulable_s) == ("0.0.0.0", 10259, 300.0)
    assert (options.kubeconfig, options.master, options.tls_cert_file) == (None, None, "")
    assert names(daemon) == (["podium"], "podium")
    assert "DefaultPreemption" in options.plugins
    assert daemon.logging == {"form": None, "verbosity": 2}


def test_the_minor_of_the_api_server_decides_and_a_reload_keeps_it(daemon: FakeDaemon, tmp_path: Path) -> None:
    daemon.release = RELEASES["1.36"]
    config = file_of(tmp_path, clientConnection={"kubeconfig": "/here"}, profiles=[{"schedulerName": "podium"}])
    assert invoke("--config", config, "--reload", "--context", "staging").exit_code == 0
    assert daemon.options.context == "staging"
    assert daemon.connection == ("/here", None, "staging")
    assert daemon.config.release.minor == daemon.config.profiles[0].release.minor == "1.36"
    assert daemon.options.release_is is ReleaseOrigin.SERVERS
    assert daemon.options.source is not None
    assert daemon.options.source.read().config.release.minor == "1.36"


def test_deprecated_metrics_are_shown_for_the_minor_before_the_deciding_one(daemon: FakeDaemon) -> None:
    flag = "--show-hidden-metrics-for-version"
    for minor, version in (("1.37", "1.36"), ("1.36", "1.35")):
        daemon.release = RELEASES[minor]
        assert invoke(flag, version).exit_code == 0
        assert daemon.options.shows_deprecated_metrics
        result = invoke(flag, minor)
        assert result.exit_code == 2
        refusal = f"{flag}: Invalid value: '{minor}': must be omitted or have the value '{version}'; only the previous"
        assert refusal in result.stderr
    assert invoke(flag, "").exit_code == 0
    assert not daemon.options.shows_deprecated_metrics


def names(daemon: FakeDaemon) -> tuple[list[str], str]:
    """The scheduler names of the profiles, and the name of the lease."""
    config = daemon.config
    return [profile.scheduler_name for profile in config.profiles], config.leader_election.resource_name


def file_of(tmp_path: Path, **fields: Any) -> str:
    """A configuration file with these fields, as JSON."""
    path = tmp_path / "config.yaml"
    head = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    path.write_text(json.dumps({**head, **fields}))
    return str(path)


def test_kube_schedulers_names_are_taken_where_a_flag_says_so(daemon: FakeDaemon, tmp_path: Path) -> None:
    flag = "--as-default-scheduler"
    assert invoke(flag).exit_code == 0
    assert names(daemon) == (["default-scheduler"], "kube-scheduler")
    assert daemon.options.is_default_scheduler
    assert daemon.options.flags["as-default-scheduler"] == "true"
    assert invoke(flag, "--leader-elect-resource-name=podium").exit_code == 0
    assert names(daemon) == (["default-scheduler"], "podium")
    assert invoke(flag, "--config", file_of(tmp_path)).exit_code == 0
    assert names(daemon) == (["default-scheduler"], "kube-scheduler")


def test_a_file_that_names_no_lease_gets_podiums(daemon: FakeDaemon, tmp_path: Path) -> None:
    profiles = [{"schedulerName": "podium"}, {"schedulerName": "batch"}]
    assert invoke("--config", file_of(tmp_path, profiles=profiles)).exit_code == 0
    assert names(daemon) == (["podium", "batch"], "podium")
    election = {"resourceName": "mine", "leaseDuration": "20s"}
    assert invoke("--config", file_of(tmp_path, profiles=profiles, leaderElection=election)).exit_code == 0
    assert names(daemon) == (["podium", "batch"], "mine")
    assert not daemon.options.is_default_scheduler


PODIUM = [{"schedulerName": "podium"}]
DEFAULT = {"schedulerName": "default-scheduler"}


@pytest.mark.parametrize(
    ("fields", "options", "messages"),
    [
        ({}, (), ["profiles[0].schedulerName: Forbidden: it is not set, which means default-scheduler"]),
        ({"profiles": [{"percentageOfNodesToScore": 50}]}, (), ["profiles[0].schedulerName: Forbidden"]),
        ({"profiles": [*PODIUM, DEFAULT]}, (), ["profiles[1].schedulerName: Forbidden: it is default-scheduler"]),
        (
            {"profiles": [DEFAULT], "leaderElection": {"leaderElect": False}},
            (),
            ["profiles[0].schedulerName: Forbidden: it is default-scheduler"],
        ),
        (
            {"profiles": PODIUM, "leaderElection": {"resourceName": "kube-scheduler"}},
            (),
            ["leaderElection.resourceName: Forbidden: it is kube-scheduler's own lease"],
        ),
        (
            {"profiles": PODIUM, "leaderElection": {"resourceName": "kube-scheduler", "resourceNamespace": "other"}},
            (),
            ["leaderElection.resourceName"],
        ),
        (
            {"profiles": PODIUM, "leaderElection": {"resourceName": "podium"}},
            ("--leader-elect-resource-name", "kube-scheduler"),
            ["leaderElection.resourceName"],
        ),
        (
            {"profiles": [DEFAULT], "leaderElection": {"resourceName": "kube-scheduler"}},
            (),
            ["profiles[0].schedulerName", "leaderElection.resourceName"],
        ),
    ],
    ids=str,
)
def test_kube_schedulers_names_are_refused_without_the_flag(
    daemon: FakeDaemon, tmp_path: Path, fields: dict[str, Any], options: tuple[str, ...], messages: list[str]
) -> None:
    path = file_of(tmp_path, **fields)
    assert invoke("--config", path, *options, "--as-default-scheduler").exit_code == 0
    daemon.error = AssertionError("must not be started")
    result = invoke("--config", path, *options, "--logging-format", "text")
    assert result.exit_code == 1
    lines = result.stderr.splitlines()
    assert len(lines) == len(messages)
    for line, start in zip(lines, messages, strict=True):
        assert line.startswith(path)
        assert f": {start}" in line
        assert line.endswith("choose another name, such as podium, or pass --as-default-scheduler")


def test_without_an_election_no_lease_is_shared(daemon: FakeDaemon, tmp_path: Path) -> None:
    election = {"leaderElect": False, "resourceName": "kube-scheduler"}
    assert invoke("--config", file_of(tmp_path, profiles=PODIUM, leaderElection=election)).exit_code == 0
    assert invoke("--leader-elect-resource-name", "kube-scheduler").exit_code == 1
    assert invoke("--leader-elect-resource-name", "kube-scheduler", "--leader-elect=false").exit_code == 0


def test_a_reload_does_not_bring_a_name_of_kube_schedulers(daemon: FakeDaemon, tmp_path: Path) -> None:
    assert invoke("--reload", "--config", file_of(tmp_path, profiles=PODIUM)).exit_code == 0
    assert daemon.options.source is not None
    file_of(tmp_path, profiles=[*PODIUM, DEFAULT])
    with pytest.raises(BadConfiguration, match=r"profiles\[1\].schedulerName: .* --as-default-scheduler"):
        daemon.options.source.read()


def test_what_the_options_say_reaches_the_daemon(daemon: FakeDaemon) -> None:
    result = invoke(
        *(
            "--kubeconfig",
            "here",
            "--master",
            "http://ann:s3cr3t@there",
            "--bind-address",
            "127.0.0.1",
            "--secure-port",
            "0",
        ),
        *("--tls-cert-file", "cert", "--tls-private-key-file", "key", "--logging-format", "text", "-v", "4"),
        *("--tls-min-version", "VersionTLS13", "--tls-cipher-suites", "TLS_AES_128_GCM_SHA256"),
        *("--pod-max-in-unschedulable-pods-duration", "1m", "--preempt-pods-of-other-schedulers"),
        "--avoid-conflicts",
    )
    assert result.exit_code == 0
    flags = daemon.options.flags
    assert (flags["secure-port"], flags["avoid-conflicts"], flags["v"]) == ("0", "true", "4")
    assert (flags["master"], flags["config"]) == ("http://there", "")
    assert replace(daemon.options, flags={}, release_is=ReleaseOrigin.ASKED_FOR) == Options(
        kubeconfig="here",
        master="http://ann:s3cr3t@there",
        bind_address="127.0.0.1",
        secure_port=0,
        tls_cert_file="cert",
        tls_private_key_file="key",
        tls_limits=TlsLimits("VersionTLS13", ("TLS_AES_128_GCM_SHA256",)),
        pod_max_in_unschedulable_s=60.0,
        preempts_pods_of_others=True,
        avoids_conflicts=True,
        plugins=daemon.options.plugins,
    )
    assert daemon.logging == {"form": "console", "verbosity": 4}


@pytest.mark.parametrize(
    ("flag", "value"), [("--tls-min-version", "VersionTLS10"), ("--tls-cipher-suites", "TLS_RSA_WITH_RC4_128_SHA")]
)
def test_weak_tls_is_refused_by_the_name_of_its_flag(daemon: FakeDaemon, flag: str, value: str) -> None:
    result = invoke(flag, value)
    assert result.exit_code == 2
    assert flag in result.output
    assert value in result.output


def test_the_doors_are_as_kube_schedulers_flags_say(daemon: FakeDaemon) -> None:
    result = invoke(
        *("--authentication-kubeconfig", "a", "--authentication-skip-lookup", "--client-ca-file", "ca"),
        *("--authentication-tolerate-lookup-failure=false", "--authentication-token-webhook-cache-ttl", "1m"),
        *("--authorization-kubeconfig", "b", "--authorization-always-allow-paths", "/healthz,/metrics"),
        *("--authorization-webhook-cache-authorized-ttl", "5s", "--authorization-webhook-cache-unauthorized-ttl=1s"),
    )
    assert result.exit_code == 0
    assert daemon.options.access == AccessOptions(
        authentication_kubeconfig="a",
        authentication_skip_lookup=True,
        authentication_tolerate_lookup_failure=False,
        authentication_token_cache_s=60.0,
        client_ca_file="ca",
        authorization_kubeconfig="b",
        authorization_always_allow_paths=("/healthz", "/metrics"),
        authorized_cache_s=5.0,
        unauthorized_cache_s=1.0,
    )


def test_the_election_is_as_the_flags_say_whatever_the_file_does(daemon: FakeDaemon, tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
        "leaderElection: {leaderElect: true, leaseDuration: 30s, resourceName: podium}\n"
        "profiles: [{schedulerName: podium}]\n"
    )
    assert invoke("--config", str(path), "--leader-elect=false", "--leader-elect-retry-period", "3s").exit_code == 0
    election = daemon.config.leader_election
    assert (election.leader_elect, election.lease_duration_s, election.retry_period_s) == (False, 30.0, 3.0)
    result = invoke("--config", str(path), "--leader-elect-lease-duration", "5s")
    assert result.exit_code == 1
    assert "leaderElection.leaseDuration: Invalid value" in result.stderr


@pytest.mark.parametrize(
    "error",
    [
        ConnectionConfigError("no such file"),
        ServingError("port taken"),
        CertificateError("not a certificate"),
        PluginError("bad args"),
        ComponentFailedError("the scheduling loop failed"),
        LeadershipLostError("leaderelection lost"),
        LeaseTakenError("kube-system/other is held by another program"),
    ],
)
@pytest.mark.parametrize("is_wrapped", [False, True])
def test_an_error_that_stops_the_daemon_is_one_line_and_exit_status_1(
    daemon: FakeDaemon, error: Exception, is_wrapped: bool
) -> None:
    daemon.error = ExceptionGroup("outer", [ExceptionGroup("inner", [error])]) if is_wrapped else error
    result = invoke()
    assert result.exit_code == 1
    entry = json.loads(result.stderr)
    assert (entry["level"], entry["msg"], entry["error"]) == ("critical", "Fatal error", str(error))
    result = invoke("--logging-format", "text")
    assert (result.exit_code, result.stderr) == (1, f"Error: {error}\n")


def test_an_exit_by_a_task_of_a_plugin_is_no_orderly_end(daemon: FakeDaemon) -> None:
    daemon.error = SystemExit(0)
    result = invoke("--logging-format", "text")
    assert (result.exit_code, result.stderr) == (
        1,
        "Error: a task of a plugin has ended the event loop: SystemExit: 0\n",
    )


def test_any_other_error_is_not_swallowed(daemon: FakeDaemon) -> None:
    daemon.error = KeyError("mistake")
    result = invoke()
    assert result.exit_code == 1
    assert "KeyError: 'mistake'" in result.output


def test_a_configuration_that_cannot_be_used_starts_nothing(daemon: FakeDaemon, tmp_path: Path) -> None:
    daemon.error = AssertionError("must not be started")
    path = tmp_path / "config.yaml"
    path.write_text("apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nparallelism: 0\n")
    result = invoke("--config", str(path))
    assert result.exit_code == 1
    assert f"{path}:3: parallelism: " in result.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ("--secure-port", "x"),
        ("--secure-port", "-1"),
        ("--secure-port", "65536"),
        ("--verbosity", "2"),
        ("-v", "11"),
        ("--leader-elect-lease-duration", "soon"),
        ("--authorization-webhook-cache-authorized-ttl", "5"),
        ("--logging-format", "xml"),
        ("--pod-max-in-unschedulable-pods-duration", "60"),
        ("--pod-max-in-unschedulable-pods-duration", "-1s"),
        ("--bind-address", "localhost"),
        ("surplus",),
        ("--hash-names",),
        ("--record-max", "1Gi"),
        ("--record", "here", "--record-max", "1k"),
        ("--record", "here", "--record-max", "-1Gi"),
        ("--record", "here", "--record-max", "2Pi"),
        ("--record", "here", "--record-max", "much"),
    ],
)
def test_options_that_make_no_sense_are_usage_errors(daemon: FakeDaemon, arguments: tuple[str, ...]) -> None:
    daemon.error = AssertionError("must not be started")
    assert invoke(*arguments).exit_code == 2


def test_a_reload_needs_a_file_to_follow(daemon: FakeDaemon) -> None:
    result = invoke("--reload")
    assert result.exit_code == 2
    assert "--reload needs a file to follow: --config, --kubeconfig, or --plugin with a file" in result.output
    assert invoke("--reload", "--kubeconfig", "here").exit_code == 0
    assert daemon.options.source is not None
