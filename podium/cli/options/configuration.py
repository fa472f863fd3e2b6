"""Read a command's configuration file together with its plugins, and show every error and warning with its field."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from podium.cli import files
from podium.cli.exit_codes import EXIT_USAGE
from podium.cli.options.paths import FILE, REFERENCE
from podium.cli.options.releases import release_asked
from podium.cli.output import LinesException
from podium.config import (
    API_VERSION,
    DEFAULT_GATES,
    IN_TREE_PLUGINS,
    KIND,
    NEWEST,
    RELEASES,
    ConfigError,
    ConfigGates,
    FeatureGateError,
    KubeSchedulerConfiguration,
    Loaded,
    PluginRegistry,
    PodGroupRules,
    Release,
    emulating,
    load,
    load_file,
    parse_feature_gates,
    unsupported_features,
    validate,
)

if TYPE_CHECKING:
    from podium.estimator.accurate import Rules
    from podium.framework.contract.plugin import Plugin

STANDARD_INPUT: Final = Path("-")

Change = Callable[[Loaded], KubeSchedulerConfiguration]

_EMPTY_FILE = f"apiVersion: {API_VERSION}\nkind: {KIND}\n"


class BadConfiguration(LinesException):
    """The file or a plugin cannot be used. Every reason has a line of its own."""

    def show(self, file: object = None) -> None:
        """Print the reasons without a prefix."""
        del file
        # The group of commands has escaped each line.
        click.echo(self.message, err=True)  # noqa: TID251


class NotRead(BadConfiguration):
    """A file or a plugin cannot be read, so that nothing is known about the configuration."""


class BadFlag(BadConfiguration):
    """The reasons are about the command line."""

    exit_code = EXIT_USAGE


@dataclass(frozen=True, slots=True)
class Usable:
    """A configuration that podium can run, the available plugins by name, and the warnings.

    `pod_groups` has the rules of scheduling pods in groups; None if each pod is scheduled alone.
    """

    config: KubeSchedulerConfiguration
    plugins: Mapping[str, type[Plugin]]
    warnings: tuple[str, ...]
    pod_groups: PodGroupRules | None = None
    read_as: Callable[[Release], Usable] | None = None
    """Reads the same file by the rules of another release. Raises: BadConfiguration."""

    def as_of(self, release: Release) -> Usable:
        """Return the same file by the rules of a release. Raises: BadConfiguration."""
        return self if self.read_as is None or release.minor == self.config.release.minor else self.read_as(release)


def readable_as_any(read: Callable[[Release], Usable]) -> Usable:
    """Read a configuration by the rules of the newest release that accepts it, before the one to run is known.

    Raises:
        BadConfiguration: no release accepts it; the reasons are the newest one's.
    """
    refusals: list[BadConfiguration] = []
    for release in reversed(list(RELEASES.values())):
        try:
            return read(release)
        except BadConfiguration as refusal:
            refusals.append(refusal)
    raise refusals[0]


def plugin_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the option `--plugin` to a command that schedules."""
    option = click.option(
        "--plugin",
        "plugins",
        multiple=True,
        type=REFERENCE,
        help="A custom plugin, module:Class or path/file.py:Class. The configuration enables it. Repeatable.",
    )
    return option(command)


def _keep(context: click.Context, option: click.Parameter, version: str) -> None:
    context.meta[f"{__name__}.{option.name}"] = version


def _version_in(context: click.Context | None, option: str) -> str:
    return "" if context is None else context.meta.get(f"{__name__}.{option}", "")


def versions_asked(context: click.Context) -> dict[str, str]:
    """Return the versions that the running command's options name, by parameter; empty for one that is not given."""
    return {option: _version_in(context, option) for option in ("emulated_version", "min_compatibility_version")}


def feature_gates_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add `--feature-gates`, and the options of versions, to a command that runs or shows a configuration."""
    for name, text in (
        ("--min-compatibility-version", "Use the gates' defaults for components of this version and newer ones."),
        ("--emulated-version", f"Use the feature gates of this older version, such as {next(iter(RELEASES))}."),
    ):
        command = click.option(name, default="", callback=_keep, expose_value=False, metavar="VERSION", help=text)(
            command
        )
    option = click.option(
        "--feature-gates",
        "feature_gates",
        multiple=True,
        metavar="NAME=BOOL,...",
        help="Feature gates to turn on or off, by kube-scheduler's names. Repeatable.",
    )
    return option(command)


def connection_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add `--kubeconfig`, `--context` and `--master` to a command that connects as the scheduler does."""
    master = click.option("--master", help="The address of the API server; overrides the kubeconfig.")
    kubeconfig = click.option(
        "--kubeconfig",
        type=FILE,
        help="The kubeconfig for the API server.  "
        "[default: $KUBECONFIG, or ~/.kube/config, or the service account of podium's pod]",
    )
    context = click.option("--context", help="The context of the kubeconfig.")
    return kubeconfig(context(master(command)))


def gates_of(values: Sequence[str], release: Release | None = None) -> ConfigGates:
    """Parse `--feature-gates`, for a release; by default the one that `--decide-as` names, or the newest.

    Raises:
        BadFlag: a gate is unknown, is locked, or is not supported; or a version cannot be emulated.
    """
    context = click.get_current_context(silent=True)
    release = release or release_asked() or NEWEST
    try:
        release = emulating(
            release, _version_in(context, "emulated_version"), _version_in(context, "min_compatibility_version")
        )
    except FeatureGateError as error:
        raise BadFlag(error.problems) from error
    try:
        return parse_feature_gates(values, release)
    except FeatureGateError as error:
        raise BadFlag(f"--feature-gates: {problem}" for problem in error.problems) from error


def read(path: Path, registry: PluginRegistry = IN_TREE_PLUGINS, gates: ConfigGates = DEFAULT_GATES) -> Loaded:
    """Load and validate a file, or standard input for `-`.

    Raises:
        BadConfiguration: the file is not valid.
        NotRead: it cannot be read.
    """
    try:
        if path == STANDARD_INPUT:
            # A file from Windows may begin with a byte order mark.
            return load(files.content(str(path)).decode("utf-8-sig", "replace"), "standard input", registry, gates)
        return load_file(path, registry, gates)
    except ConfigError as error:
        raise BadConfiguration(error.lines()) from error
    except OSError as error:
        raise NotRead([f"{path}: {error.strerror}"]) from error


def usable(
    path: Path | None,
    references: Sequence[str] = (),
    feature_gates: Sequence[str] = (),
    *,
    to_run: bool = True,
    change: Change = lambda file: file.config,
    release: Release = NEWEST,
) -> Usable:
    """Read a configuration, or take the defaults, together with the plugins that it may enable.

    Args:
        feature_gates: the values of `--feature-gates`.
        to_run: whether a daemon will run the configuration. If not, only fields that influence decisions are checked.
        change: applies command-line options to the configuration from the file.
        release: decides unless `--decide-as` names another.

    Raises:
        BadConfiguration: a plugin or feature is not available, or the file is not valid or not supported by podium.
    """
    plugins = discover_plugins(references)
    return _usable_as(path, plugins, feature_gates, to_run, change, release_asked() or release)


def _usable_as(
    path: Path | None,
    plugins: Mapping[str, type[Plugin]],
    feature_gates: Sequence[str],
    to_run: bool,
    change: Change,
    release: Release,
) -> Usable:
    """Read the configuration by the rules of a release."""
    from podium.framework.profile.runtime import registry_of

    gates = gates_of(feature_gates, release)
    registry = registry_of(plugins)
    file = load(_EMPTY_FILE, "defaults", registry, gates) if path is None else read(path, registry, gates)
    new_config = change(file)
    if new_config != file.config:
        file = replace(file, config=new_config)
        # Options can break what the file alone did not, such as names that must differ.
        if errors := validate(new_config, gates):
            raise BadConfiguration(error.text for error in errors)
    missing = unsupported_features(file, plugins, registry)
    refusals = missing.refusals if to_run else missing.undecidable
    if refusals:
        raise BadConfiguration(f"{path or 'defaults'}: {error.text}" for error in refusals)
    # Questions ignore what warnings are about, such as the leader election.
    warnings = (*file.warnings, *missing.warnings) if to_run else ()
    read_as = partial(_usable_as, path, plugins, feature_gates, to_run, change)
    return Usable(file.config, plugins, warnings, gates.pod_groups, read_as)


def estimator_rules(config: Path | None, plugins: Sequence[str], mode: str) -> Rules | None:
    """Return what decides on accurate estimates; None in parity mode.

    Raises:
        UsageError: a configuration, a plugin or a release in parity mode, in which it would decide nothing.
        BadConfiguration: it cannot be used.
    """
    if mode == "accurate":
        return accurate_rules(usable(config, plugins, to_run=False))
    if config is not None or plugins or release_asked() is not None:
        raise click.UsageError("--config, --plugin and --decide-as go with --mode accurate")
    return None


def accurate_rules(good: Usable) -> Rules:
    """Return what decides in member clusters: as each member's release has it, unless `--decide-as` is given."""
    from podium.estimator.accurate import Rules
    from podium.estimator.errors import EstimateError

    def as_of(release: Release) -> Rules:
        try:
            return accurate_rules(good.as_of(release))
        except BadConfiguration as error:
            raise EstimateError("; ".join(error.lines)) from error

    return Rules(good.config, good.plugins, None if release_asked() else as_of)


def construction_failures(good: Usable) -> tuple[str, ...]:
    """Construct every plugin with its configured args, and return one line for each failure.

    Without this, an unknown field or a failing constructor would show only when a daemon starts.
    """
    from podium.cluster import Snapshot
    from podium.framework.contract.status import PluginError
    from podium.framework.profile.runtime import construct, names_to_construct
    from podium.queues import build_hint_map
    from podium.testing.handle import RecordedGroups, RecordingHandle

    problems: list[str] = []
    for profile in good.config.profiles:
        for name in names_to_construct(profile, good.plugins):
            try:
                handle = RecordingHandle(Snapshot(), release=good.config.release)
                handle.pod_groups = None if good.pod_groups is None else RecordedGroups(good.pod_groups)
                # Registering for events is part of the construction, and can fail as well.
                build_hint_map([construct(good.plugins[name], profile, handle)])
            except PluginError as error:
                problems.append(str(error))
    # Profiles with the same mistake report it once.
    return tuple(dict.fromkeys(problems))


def discover_plugins(references: Sequence[str]) -> Mapping[str, type[Plugin]]:
    """Find all in-tree and custom plugins, by name.

    Raises:
        NotRead: a plugin cannot be loaded.
    """
    from podium.cli.options.plugin_loading import limited_loading
    from podium.plugins.loading.discovery import DiscoveryError, discover

    try:
        with limited_loading():
            return discover(references)
    except DiscoveryError as error:
        raise NotRead([str(error)]) from error
