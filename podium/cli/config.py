"""`podium config`: look at a configuration without running it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click

from podium.cli.exit_codes import EXIT_NO
from podium.cli.groups import CommandGroup
from podium.cli.options.configuration import (
    BadConfiguration,
    BadFlag,
    NotRead,
    Usable,
    construction_failures,
    discover_plugins,
    feature_gates_option,
    gates_of,
    plugin_option,
    usable,
)
from podium.cli.options.own_names import kube_schedulers_names
from podium.cli.options.releases import as_the_newest
from podium.cli.output import JSON, TEXT, YAML, output_option, print_laid_out, print_value, say
from podium.config import (
    ConfigError,
    ConfigGates,
    Extender,
    FieldError,
    KubeSchedulerConfiguration,
    Loaded,
    PluginRegistry,
    default_configuration,
    load_file,
    to_yaml,
    with_own_names,
)
from podium.config import effective as as_effective


class _Unusable(BadConfiguration):
    """The answer of `check`: podium cannot run with this configuration."""

    exit_code = EXIT_NO


@click.group(cls=CommandGroup)
def command() -> None:
    """Check configuration files, show their effective form, or show the defaults."""


@command.command()
@click.argument("file", type=click.Path(path_type=Path))
@plugin_option
@as_the_newest
@feature_gates_option
@output_option()
def check(file: Path, plugins: tuple[str, ...], feature_gates: tuple[str, ...], output: str) -> None:
    """Check whether podium can run with FILE. If not, print every error and exit with 3."""
    if output != TEXT:
        # Programs read the errors from the answer, not from standard error.
        verdict, exit_code = _verdict(file, plugins, feature_gates)
        print_value(verdict, output)
        raise SystemExit(exit_code)
    try:
        good = _usable_beside_kube_scheduler(file, plugins, feature_gates)
    except BadConfiguration as error:
        if _exit_code(error) != EXIT_NO:
            raise
        raise _Unusable(error.lines) from error
    for warning in good.warnings:
        say(f"{file}: warning: {warning}", err=True)
    if problems := construction_failures(good):
        raise _Unusable(f"{file}: {problem}" for problem in problems)
    names = ", ".join(profile.scheduler_name for profile in good.config.profiles)
    say(f"{file}: good, profiles: {names}")
    for extender in good.config.extenders:
        say(f"{file}: extender {_extender_text(extender)}")


def _usable_beside_kube_scheduler(file: Path, plugins: tuple[str, ...], feature_gates: tuple[str, ...]) -> Usable:
    """Read the configuration, with a warning for each name that `podium run` accepts only with a flag."""
    refusals: list[FieldError] = []

    def note(configuration: Loaded) -> KubeSchedulerConfiguration:
        config = with_own_names(configuration, is_file=True)
        refusals.extend(kube_schedulers_names(config, configuration.present))
        return config

    good = usable(file, plugins, feature_gates, change=note)
    return replace(good, warnings=(*good.warnings, *(refusal.text for refusal in refusals)))


def _exit_code(error: BadConfiguration) -> int:
    """Return the exit code of `check`: what cannot be read is not checked, and everything else is the answer no."""
    return error.exit_code if isinstance(error, NotRead | BadFlag) else EXIT_NO


def _verdict(file: Path, plugins: tuple[str, ...], feature_gates: tuple[str, ...]) -> tuple[dict[str, Any], int]:
    """Return the result of `check` for programs, and its exit code."""
    try:
        good = _usable_beside_kube_scheduler(file, plugins, feature_gates)
    except BadConfiguration as error:
        refusal = {"file": str(file), "ok": False, "errors": list(error.lines), "warnings": [], "profiles": []}
        return refusal, _exit_code(error)
    errors = [f"{file}: {problem}" for problem in construction_failures(good)]
    profiles = [profile.scheduler_name for profile in good.config.profiles]
    verdict = {
        "file": str(file),
        "ok": not errors,
        "errors": errors,
        "warnings": list(good.warnings),
        "profiles": profiles,
    }
    return verdict, EXIT_NO if errors else 0


def _extender_text(extender: Extender) -> str:
    """Describe the extender and its phases. Parts of its URL that may be secret are left out."""
    from podium.framework.contract.questions import name_of

    verbs = {
        "filter": extender.filter_verb,
        "prioritize": extender.prioritize_verb,
        "preempt": extender.preempt_verb,
        "bind": extender.bind_verb,
    }
    phases = ", ".join(phase for phase, verb in verbs.items() if verb) or "nothing"
    resources = ", ".join(resource.name for resource in extender.managed_resources)
    condition = f" about pods that ask for {resources}" if resources else ""
    failing = "skipped" if extender.ignorable else "an error"
    return f"{name_of(extender)}: asked to {phases}{condition}; its failure is {failing}"


@command.command()
@click.argument("files", type=click.Path(path_type=Path), nargs=-1, required=True, metavar="FILE...")
@output_option(YAML)
@plugin_option
@as_the_newest
@feature_gates_option
def effective(files: tuple[Path, ...], output: str, plugins: tuple[str, ...], feature_gates: tuple[str, ...]) -> None:
    """Print each FILE as podium understands it: defaults filled in, plugins merged, in kube-scheduler's shape.

    With yaml, the errors of invalid files go to standard error and the exit status is 1. With json, each file gets one
    line: {"file", "ok", "errors", "effective"}. Text is the same as yaml.
    """
    from podium.framework.profile.runtime import registry_of

    gates, registry = gates_of(feature_gates), registry_of(discover_plugins(plugins))
    # All files are read before any error ends the command, so that the others are shown.
    read = [_Read.of(file, registry, gates) for file in files]
    if output == JSON:
        for result in read:
            print_value(result.to_json(), output)
        return
    # YAML documents of valid files come first, and can be piped on.
    print_laid_out("---\n".join(to_yaml(result.config) for result in read if result.config is not None))
    if lines := [line for result in read for line in result.lines]:
        raise BadConfiguration(lines)


@dataclass(frozen=True, slots=True)
class _Read:
    """One file: its configuration, or its errors, both plain and as lines that name the file."""

    file: Path
    config: KubeSchedulerConfiguration | None
    errors: tuple[str, ...] = ()
    lines: tuple[str, ...] = ()

    @classmethod
    def of(cls, file: Path, registry: PluginRegistry, gates: ConfigGates) -> _Read:
        try:
            return cls(file, load_file(file, registry, gates).config)
        except ConfigError as error:
            return cls(file, None, tuple(problem.text for problem in error.errors), error.lines())
        except OSError as error:
            return cls(file, None, (str(error.strerror),), (f"{file}: {error.strerror}",))

    def to_json(self) -> dict[str, Any]:
        content = None if self.config is None else as_effective(self.config)
        return {"file": str(self.file), "ok": self.config is not None, "errors": self.errors, "effective": content}


@command.command()
@as_the_newest
@output_option(YAML)
def defaults(output: str) -> None:
    """Print kube-scheduler's default configuration, which an empty file stands for. Text is the same as yaml.

    `podium run` uses it as well, except that the profile and the lease are named podium.
    """
    config = default_configuration(gates_of(()))
    if output == JSON:
        print_value(as_effective(config), output)
    else:
        print_laid_out(to_yaml(config))
