"""The configuration of a command: file and plugins, read together; every error shown with its field, every warning."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click

from podium.config import (
    API_VERSION,
    DEFAULT_GATES,
    IN_TREE_PLUGINS,
    KIND,
    ConfigError,
    ConfigGates,
    FeatureGateError,
    KubeSchedulerConfiguration,
    Loaded,
    PluginRegistry,
    load,
    load_file,
    parse_feature_gates,
    unsupported,
    validate,
)
from podium.framework.contract.interface import Plugin
from podium.framework.profile.runtime import points_of
from podium.plugins.discovery import DiscoveryError, discover

EXIT_BAD_CONFIGURATION = 1

Change = Callable[[KubeSchedulerConfiguration], KubeSchedulerConfiguration]

_NOTHING_SAID = f"apiVersion: {API_VERSION}\nkind: {KIND}\n"


class BadConfiguration(click.ClickException):
    """The file or a plugin cannot be used; shows every reason, one a line."""

    exit_code = EXIT_BAD_CONFIGURATION

    def __init__(self, lines: Iterable[str]) -> None:
        super().__init__("\n".join(lines))

    def show(self, file: object = None) -> None:
        """Print the reasons as they are."""
        del file
        click.echo(self.message, err=True)


@dataclass(frozen=True, slots=True)
class Usable:
    """A configuration that podium can run, the plugins there are by name, and what to warn about."""

    config: KubeSchedulerConfiguration
    plugins: Mapping[str, type[Plugin]]
    warnings: tuple[str, ...]


def plugin_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """The option `--plugin` of every command that schedules."""
    option = click.option(
        "--plugin",
        "plugins",
        multiple=True,
        metavar="REFERENCE",
        help="A plugin of yours, module:Class or path/file.py:Class; the configuration enables it. Repeatable.",
    )
    return option(command)


def feature_gates_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """The option `--feature-gates` of every command that reads a configuration to run it, or to show it."""
    option = click.option(
        "--feature-gates",
        "feature_gates",
        multiple=True,
        metavar="NAME=BOOL,...",
        help="Features to switch on or off, as kube-scheduler names them. Repeatable.",
    )
    return option(command)


def connection_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options `--kubeconfig` and `--master` of every command that stands where the scheduler runs."""
    master = click.option("--master", help="The API server's address, in place of the kubeconfig's.")
    kubeconfig = click.option(
        "--kubeconfig", help="Credentials for the API server; by default those of the pod podium runs in."
    )
    return kubeconfig(master(command))


def gates_of(values: Sequence[str]) -> ConfigGates:
    """What `--feature-gates` asks for.

    Raises:
        BadConfiguration: a gate is unknown, locked, or not to be had.
    """
    try:
        return parse_feature_gates(values)
    except FeatureGateError as error:
        raise BadConfiguration(f"--feature-gates: {problem}" for problem in error.problems) from error


def read(path: Path, registry: PluginRegistry = IN_TREE_PLUGINS, gates: ConfigGates = DEFAULT_GATES) -> Loaded:
    """Load and validate a file.

    Raises:
        BadConfiguration: it cannot be read, or it is not valid.
    """
    try:
        return load_file(path, registry, gates)
    except ConfigError as error:
        raise BadConfiguration(error.lines()) from error
    except OSError as error:
        raise BadConfiguration([f"{path}: {error.strerror}"]) from error


def usable(
    path: Path | None,
    references: Sequence[str] = (),
    feature_gates: Sequence[str] = (),
    *,
    to_run: bool = True,
    change: Change = lambda config: config,
) -> Usable:
    """Read a configuration, or take the defaults, together with the plugins it may enable.

    Args:
        feature_gates: as given to `--feature-gates`.
        to_run: a daemon is to run with it; otherwise only what bears on decisions counts.
        change: what the command line has to say about what was read.

    Raises:
        BadConfiguration: a plugin or feature cannot be had, the file is not valid, or asks for what podium cannot do.
    """
    gates = gates_of(feature_gates)
    plugins = found_plugins(references)
    registry = registry_of(plugins)
    loaded = load(_NOTHING_SAID, "defaults", registry, gates) if path is None else read(path, registry, gates)
    changed = change(loaded.config)
    if changed != loaded.config:
        loaded = replace(loaded, config=changed)
        if errors := validate(changed, gates):
            raise BadConfiguration(error.text for error in errors)
    missing = unsupported(loaded, plugins, registry)
    refused = missing.refused if to_run else missing.undecidable
    if refused:
        raise BadConfiguration(f"{path or 'defaults'}: {error.text}" for error in refused)
    return Usable(loaded.config, plugins, (*loaded.warnings, *missing.warnings) if to_run else ())


def not_constructed(good: Usable) -> tuple[str, ...]:
    """Why plugins cannot be constructed with the args that the configuration gives them, a line for each.

    Nothing else runs them before a daemon does: an unknown field, or a constructor that fails, would show only then.
    """
    from podium.cluster import Snapshot
    from podium.framework.contract.status import PluginError
    from podium.framework.profile.runtime import construct, constructed
    from podium.queues import build_hint_map
    from podium.testing.handle import RecordingHandle

    problems: list[str] = []
    for profile in good.config.profiles:
        for name in constructed(profile, good.plugins):
            try:
                build_hint_map([construct(good.plugins[name], profile, RecordingHandle(Snapshot(), ()))])
            except PluginError as error:
                problems.append(str(error))
    return tuple(dict.fromkeys(problems))


def found_plugins(references: Sequence[str]) -> Mapping[str, type[Plugin]]:
    """The plugins there are, in-tree and others, by name.

    Raises:
        BadConfiguration: one cannot be had.
    """
    try:
        return discover(references)
    except DiscoveryError as error:
        raise BadConfiguration([str(error)]) from error


def registry_of(plugins: Mapping[str, type[Plugin]]) -> PluginRegistry:
    """What the configuration has to know of the plugins: the extension points of each."""
    return {**IN_TREE_PLUGINS, **{name: points_of(each) for name, each in plugins.items()}}
