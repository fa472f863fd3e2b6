from __future__ import annotations

import sys

import click
import pytest
from click.testing import CliRunner, Result

from podium.cli.options.tracing import take_tracing_options, tracing_options
from podium.daemon.options import TracingOptions


def invoke(*arguments: str) -> tuple[Result, TracingOptions | None]:
    options_seen: list[TracingOptions | None] = []

    @click.command()
    @tracing_options
    def command(**fields: object) -> None:
        options_seen.append(take_tracing_options(fields))
        assert fields == {}

    result = CliRunner().invoke(command, arguments)
    return result, options_seen[0] if options_seen else None


@pytest.mark.parametrize(
    ("arguments", "options"),
    [
        ((), None),
        (("http://collector:4318",), TracingOptions("http://collector:4318/v1/traces", 10_000)),
        (("https://collector/",), TracingOptions("https://collector/v1/traces", 10_000)),
        (("http://[::1]:4318/own/path",), TracingOptions("http://[::1]:4318/own/path", 10_000)),
        (
            ("http://collector", "--tracing-sampling-rate-per-million", "0"),
            TracingOptions("http://collector/v1/traces", 0),
        ),
    ],
)
def test_a_collector_and_a_rate(arguments: tuple[str, ...], options: TracingOptions | None) -> None:
    result, options_read = invoke(*(("--tracing-endpoint", *arguments) if arguments else ()))
    assert (result.exit_code, options_read) == (0, options)


@pytest.mark.parametrize(
    "url", ["", "collector:4317", "grpc://collector", "http://", "http://host:99999", "http://h:0"]
)
def test_what_is_no_url_is_refused_by_the_options_name(url: str) -> None:
    result, _ = invoke("--tracing-endpoint", url)
    assert result.exit_code == 2
    assert "--tracing-endpoint" in result.output
    assert "http://collector:4318" in result.output


@pytest.mark.parametrize("rate", ["-1", "1000001", "all"])
def test_a_rate_is_a_number_of_attempts_in_a_million(rate: str) -> None:
    result, _ = invoke("--tracing-endpoint", "http://collector", "--tracing-sampling-rate-per-million", rate)
    assert result.exit_code == 2
    assert "--tracing-sampling-rate-per-million" in result.output


def test_a_rate_needs_a_collector() -> None:
    result, _ = invoke("--tracing-sampling-rate-per-million", "5")
    assert result.exit_code == 2
    assert "--tracing-sampling-rate-per-million needs --tracing-endpoint" in result.output


def test_without_the_extra_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "podium.telemetry.otlp", raising=False)
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.resources", None)
    result, _ = invoke("--tracing-endpoint", "http://collector")
    assert result.exit_code == 1
    assert result.output.startswith("Error: --tracing-endpoint needs podium[otel]")
