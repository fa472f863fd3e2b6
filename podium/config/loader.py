"""Turns a configuration file into a completed, validated configuration, or reports all of its errors at once.

Owns the order of the stages: document, fields, defaults, validation, buildable profiles. Later stages run on the values
that earlier ones could read, and an error that is caused by an unreadable value is not reported a second time.

Source: cmd/kube-scheduler/app/options/configfile.go, apis/config/scheme (kube-scheduler 1.36.2: strict decoding)
Differs: upstream stops at the first stage that fails, and reads no ConfigMap.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from podium.config.args import NodeResourcesFitArgs
from podium.config.config_map import configuration_in
from podium.config.defaults import complete
from podium.config.document import FILE_BYTES_MAX, Document, parse_document
from podium.config.effective import apply_extenders
from podium.config.expansion import build_errors, expand_plugins
from podium.config.extension_points import IN_TREE_PLUGINS, PluginRegistry
from podium.config.feature_gates import DEFAULT_GATES, ConfigGates
from podium.config.field_errors import ConfigError, ErrorKind, ErrorList, FieldError
from podium.config.schema import CONFIGURATION
from podium.config.shapes import Reading
from podium.config.types import API_GROUP, API_VERSION, KIND, KubeSchedulerConfiguration
from podium.config.validation import validate
from podium.lib.bounded_read import read_file
from podium.lib.yaml_reader import Node

_HARMLESS = frozenset({ErrorKind.UNKNOWN, ErrorKind.DUPLICATE_FIELD})
"""Errors that leave the value readable, so that later stages can still check it."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """A valid file.

    Attributes: ``config``, complete and valid; ``file_config``, the file's own content, before the defaults;
    ``present``, path → line (None in JSON) of the fields that the file sets; ``warnings``, sentences that each name a
    field.
    """

    config: KubeSchedulerConfiguration
    file_config: KubeSchedulerConfiguration
    present: Mapping[str, int | None]
    warnings: tuple[str, ...] = ()


def load_file(
    path: str | Path, registry: PluginRegistry = IN_TREE_PLUGINS, gates: ConfigGates = DEFAULT_GATES
) -> Loaded:
    """Load a file, as ``load`` loads a text.

    Raises: ConfigError, OSError.
    """
    try:
        # Editors on Windows write a byte order mark.
        text = read_file(path, FILE_BYTES_MAX).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        detail = f"not UTF-8 text: {error.reason} at byte {error.start}"
        raise ConfigError([FieldError("", ErrorKind.SYNTAX, None, detail)], str(path)) from None
    return load(text, str(path), registry, gates)


def load(
    text: str,
    source: str = "",
    registry: PluginRegistry = IN_TREE_PLUGINS,
    gates: ConfigGates = DEFAULT_GATES,
) -> Loaded:
    """Parse YAML or JSON text strictly, complete it with upstream's defaults and validate it.

    The text may be a ConfigMap that holds the configuration.

    Args: ``source``: the name of the text in messages; ``registry``: the existing plugins, in-tree and others.
    Raises: ConfigError with every error found.
    """
    text, source = configuration_in(text, source)
    reading = Reading(absent_keys=gates.release.absent_points)
    document, file_config = _fields(text, source, reading)
    # What could not be read has a default now, about which a later stage must not complain.
    unreadable = {error.path for error in reading.errors.errors if error.kind not in _HARMLESS}
    config, late = _judge(file_config, unreadable, reading, registry, gates)
    reading.errors.extend(replace(error, line=_line_of(error.path, reading)) for error in late)
    if errors := reading.errors.errors:
        in_file_order = sorted(errors, key=lambda error: (error.line is None, error.line or 0))
        raise ConfigError(in_file_order, source)
    return Loaded(config, file_config, reading.present, tuple(_warnings(document, config, registry, gates)))


def _fields(text: str, source: str, reading: Reading) -> tuple[Document, KubeSchedulerConfiguration]:
    """Read a document's own fields. Raises: ConfigError if there are none."""
    document = parse_document(text, reading.errors)
    root = None if document is None else _body(document.root, reading.errors)
    if document is None or root is None:
        raise ConfigError(reading.errors.errors, source)
    file_config = CONFIGURATION.read(root, "", reading)
    assert isinstance(file_config, KubeSchedulerConfiguration), "the root is an object"
    return document, file_config


def _body(root: Node, errors: ErrorList) -> Node | None:
    """Return the document without apiVersion and kind; None if it is no KubeSchedulerConfiguration at all."""
    if root.value is not None and not isinstance(root.value, dict):
        kind = "a list" if isinstance(root.value, list) else "a scalar"
        errors.add(FieldError("", ErrorKind.TYPE, None, f"expected an object of kind {KIND}, got {kind}", root.line))
        return None
    fields = dict(root.value or {})
    version = _head(fields.pop("apiVersion", None), "apiVersion", API_VERSION, errors)
    kind_ok = _head(fields.pop("kind", None), "kind", KIND, errors)
    # An empty document, or one of another kind, has no fields worth an error each.
    if not fields and not (version and kind_ok):
        return None
    is_own_version = version is None or str(version).startswith(f"{API_GROUP}/")
    return Node(fields, root.line) if kind_ok in (None, KIND) and is_own_version else None


def _head(node: Node | None, path: str, value: str, errors: ErrorList) -> str | None:
    """Return the value of apiVersion or kind as text; None if it is missing."""
    if node is None or node.value in (None, ""):
        errors.add(FieldError(path, ErrorKind.REQUIRED, None, f'expected "{value}"', node.line if node else None))
        return None
    if node.value != value:
        detail = f'supported values: "{value}"'
        errors.add(FieldError(path, ErrorKind.NOT_SUPPORTED, node.plain(), detail, node.line))
    return str(node.plain())


def _judge(
    file_config: KubeSchedulerConfiguration,
    unreadable: set[str],
    reading: Reading,
    registry: PluginRegistry,
    gates: ConfigGates,
) -> tuple[KubeSchedulerConfiguration, list[FieldError]]:
    """Complete the configuration, and collect its errors beyond those of its form."""
    config = complete(file_config, gates, reading.present)
    errors = list(validate(config, gates))
    # Upstream looks for these args only then, and fails without them.
    if any(resource.ignored_by_scheduler for entry in config.extenders for resource in entry.managed_resources):
        errors += _missing_fit_args(config)
    config = apply_extenders(config)
    spoilt = {above for path in unreadable for above in _upwards(path)}
    # Plugins of a profile that was not read in full would be reported as missing.
    skip = {i for i in range(len(config.profiles)) if f"profiles[{i}]" in spoilt}
    errors += build_errors(config, registry, gates, skip)
    return config, [error for error in errors if not any(above in unreadable for above in _upwards(error.path))]


def _missing_fit_args(config: KubeSchedulerConfiguration) -> Iterator[FieldError]:
    for i, profile in enumerate(config.profiles):
        if not any(isinstance(entry.args, NodeResourcesFitArgs) for entry in profile.plugin_config):
            detail = "can't find NodeResourcesFitArgs in plugin config"
            yield FieldError(f"profiles[{i}].pluginConfig", ErrorKind.PROFILE, None, detail)


def _warnings(
    document: Document, config: KubeSchedulerConfiguration, registry: PluginRegistry, gates: ConfigGates
) -> Iterator[str]:
    if document.documents > 1:
        yield f"only the first of {document.documents} YAML documents is read"
    election = config.leader_election
    if election.leader_elect and election.renew_deadline_s <= 1.2 * election.retry_period_s:
        yield "leaderElection.renewDeadline: must be greater than 1.2 times retryPeriod for an election to start"
    # Where groups are entries of the queue, all their pods are tried together whether or not the plugin counts them.
    if gates.pod_groups is not None and gates.pod_groups.are_entries:
        for i, profile in enumerate(config.profiles):
            if "GangScheduling" not in expand_plugins(profile, registry).names():
                yield (
                    f"profiles[{i}].plugins: GenericWorkload is enabled, but GangScheduling plugin is not set. Gang "
                    "scheduling using PodGroups may not work as expected."
                )


def _upwards(path: str) -> Iterator[str]:
    """Yield a path, then its parents up to the first name."""
    while path:
        yield path
        path = path[: max(path.rfind("."), path.rfind("["), 0)]


def _line_of(path: str, reading: Reading) -> int | None:
    """Return the line of a field, or of its nearest parent that the file contains."""
    return next((reading.present[above] for above in _upwards(path) if above in reading.present), None)
