from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from podium.cli.main import main
from podium.cli.options import logs
from podium.client.credentials import ConnectionConfigError
from podium.daemon.app import App
from podium.daemon.options import Options
from podium.framework.contract.status import PluginError
from podium.service.access_options import AccessOptions
from podium.service.election import LeadershipLostError
from podium.service.serving import CertificateError, ServingError
from podium.service.supervision import ComponentFailedError
from podium.service.tls_limits import TlsLimits
from podium.telemetry import configure_logging


class Started:
    """Takes the place of the daemon; remembers what it was made with."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.options = Options()
        self.config: Any = None
        self.error: BaseException | None = None
        self.logging: dict[str, Any] = {}
        monkeypatch.setattr(App, "__init__", self._made)
        monkeypatch.setattr(App, "run", self._run)
        monkeypatch.setattr(logs, "configure_logging", self._configured)

    def _configured(self, **values: Any) -> str:
        self.logging.update(values)
        return configure_logging(**values)

    @property
    def _made(self) -> Callable[..., None]:
        def made(_: App, config: Any, options: Options, *, is_watched: bool) -> None:
            assert is_watched
            self.config, self.options = config, options

        return made

    @property
    def _run(self) -> Callable[..., Any]:
        async def run(_: App) -> None:
            if self.error is not None:
                raise self.error

        return run


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> Started:
    return Started(monkeypatch)


def invoke(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["run", *arguments])


def test_without_options_the_defaults_are_run(started: Started) -> None:
    assert invoke().exit_code == 0
    options = started.options
    assert (options.bind_address, options.secure_port, options.pod_max_in_unschedulable_s) == ("0.0.0.0", 10259, 300.0)
    assert (options.kubeconfig, options.master, options.tls_cert_file) == (None, None, "")
    assert [profile.scheduler_name for profile in started.config.profiles] == ["default-scheduler"]
    assert "DefaultPreemption" in options.plugins
    assert started.logging == {"form": None, "verbosity": 2}


def test_what_the_options_say_reaches_the_daemon(started: Started) -> None:
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
    flags = started.options.flags
    assert (flags["secure-port"], flags["avoid-conflicts"], flags["v"]) == ("0", "true", "4")
    assert (flags["master"], flags["config"]) == ("http://there", "")
    assert replace(started.options, flags={}) == Options(
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
        plugins=started.options.plugins,
    )
    assert started.logging == {"form": "console", "verbosity": 4}


@pytest.mark.parametrize(
    ("flag", "value"), [("--tls-min-version", "VersionTLS10"), ("--tls-cipher-suites", "TLS_RSA_WITH_RC4_128_SHA")]
)
def test_weak_tls_is_refused_by_the_name_of_its_flag(started: Started, flag: str, value: str) -> None:
    result = invoke(flag, value)
    assert result.exit_code == 2
    assert flag in result.output
    assert value in result.output


def test_the_doors_are_as_kube_schedulers_flags_say(started: Started) -> None:
    result = invoke(
        *("--authentication-kubeconfig", "a", "--authentication-skip-lookup", "--client-ca-file", "ca"),
        *("--authentication-tolerate-lookup-failure=false", "--authentication-token-webhook-cache-ttl", "1m"),
        *("--authorization-kubeconfig", "b", "--authorization-always-allow-paths", "/healthz,/metrics"),
        *("--authorization-webhook-cache-authorized-ttl", "5s", "--authorization-webhook-cache-unauthorized-ttl=1s"),
    )
    assert result.exit_code == 0
    assert started.options.access == AccessOptions(
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


def test_the_election_is_as_the_flags_say_whatever_the_file_does(started: Started, tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
        "leaderElection: {leaderElect: true, leaseDuration: 30s, resourceName: podium}\n"
    )
    assert invoke("--config", str(path), "--leader-elect=false", "--leader-elect-retry-period", "3s").exit_code == 0
    election = started.config.leader_election
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
    ],
)
@pytest.mark.parametrize("wrapped", [False, True])
def test_what_stops_the_daemon_is_told_in_a_line_and_ends_it_with_1(
    started: Started, error: Exception, wrapped: bool
) -> None:
    started.error = ExceptionGroup("outer", [ExceptionGroup("inner", [error])]) if wrapped else error
    result = invoke()
    assert result.exit_code == 1
    entry = json.loads(result.stderr)
    assert (entry["level"], entry["msg"], entry["error"]) == ("critical", "Fatal error", str(error))
    result = invoke("--logging-format", "text")
    assert (result.exit_code, result.stderr) == (1, f"Error: {error}\n")


def test_an_exit_by_a_task_of_a_plugin_is_no_orderly_end(started: Started) -> None:
    started.error = SystemExit(0)
    result = invoke("--logging-format", "text")
    assert (result.exit_code, result.stderr) == (
        1,
        "Error: a task of a plugin has ended the event loop: SystemExit: 0\n",
    )


def test_any_other_error_is_not_swallowed(started: Started) -> None:
    started.error = KeyError("mistake")
    result = invoke()
    assert result.exit_code == 1
    assert "KeyError: 'mistake'" in result.output


def test_a_configuration_that_cannot_be_used_starts_nothing(started: Started, tmp_path: Path) -> None:
    started.error = AssertionError("must not be started")
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
    ],
)
def test_options_that_make_no_sense_are_usage_errors(started: Started, arguments: tuple[str, ...]) -> None:
    started.error = AssertionError("must not be started")
    assert invoke(*arguments).exit_code == 2


def test_a_reload_needs_a_file_to_follow(started: Started) -> None:
    result = invoke("--reload")
    assert result.exit_code == 2
    assert "--reload needs a file to follow: --config, --kubeconfig, or --plugin with a file" in result.output
    assert invoke("--reload", "--kubeconfig", "here").exit_code == 0
    assert started.options.source is not None
