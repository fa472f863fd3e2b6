"""The page of configuration errors: each kind with files that have it, and what podium says about them.

The messages come from reading the files. A test holds that every place in `podium.config` that finds an error is shown.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from podium.config import (
    API_VERSION,
    IN_TREE_PLUGINS,
    KIND,
    ConfigError,
    ErrorKind,
    ExtensionPoint,
    FieldError,
    load,
    parse_feature_gates,
    unsupported_features,
)
from podium.plugins import IN_TREE


@dataclass(frozen=True, slots=True)
class Wrong:
    """The text of a file beside `apiVersion` and `kind`, unless it is the whole file, and the feature gates."""

    text: str
    gates: str = ""
    is_whole: bool = False

    @property
    def file(self) -> str:
        """The whole file."""
        return self.text if self.is_whole else f"apiVersion: {API_VERSION}\nkind: {KIND}\n{self.text}\n"


def _profile(says: str) -> str:
    return f"profiles: [{{schedulerName: podium, {says}}}]"


def _args(plugin: str, args: str) -> str:
    return _profile(f"pluginConfig: [{{name: {plugin}, args: {{{args}}}}}]")


def _affinity(terms: str) -> str:
    requirement = f"requiredDuringSchedulingIgnoredDuringExecution: {{nodeSelectorTerms: [{{{terms}}}]}}"
    return _args("NodeAffinity", f"addedAffinity: {{{requirement}}}")


def _constraints(*constraints: str) -> str:
    return _args("PodTopologySpread", f"defaultingType: List, defaultConstraints: [{', '.join(constraints)}]")


def _strategy(says: str) -> str:
    return _args("NodeResourcesFit", f"scoringStrategy: {{{says}}}")


def _shape(points: str) -> str:
    return _strategy(f"type: RequestedToCapacityRatio, requestedToCapacityRatio: {{shape: [{points}]}}")


def _two(first: str, second: str) -> str:
    return f"profiles: [{{schedulerName: a, {first}}}, {{schedulerName: b, {second}}}]"


def _sorted_by(plugin: str) -> str:
    return f"plugins: {{queueSort: {{enabled: [{{name: {plugin}}}], disabled: [{{name: '*'}}]}}}}"


def _extender(says: str) -> str:
    return f"extenders: [{{urlPrefix: 'http://a', {says}}}]"


_SORT_ARGS: Final = "pluginConfig: [{{name: PrioritySort, args: {{by: {}}}}}]"
_ZONE: Final = "topologyKey: zone, whenUnsatisfiable: DoNotSchedule"

WRONG: Final = tuple(
    case if isinstance(case, Wrong) else Wrong(case)
    for case in (
        # The form of the file.
        Wrong("profiles: [", is_whole=True),
        Wrong("kind: ConfigMap\nmetadata: {name: podium}\ndata: {log: debug, lease: podium}", is_whole=True),
        Wrong("[" * 3000, is_whole=True),
        Wrong("- a list", is_whole=True),
        Wrong(f"kind: {KIND}", is_whole=True),
        Wrong(f"apiVersion: kubescheduler.config.k8s.io/v1beta3\nkind: {KIND}", is_whole=True),
        "parallelism: 16\nparallelism: 8",
        "paralelism: 8",
        "parallelism: many",
        "leaderElection: {leaseDuration: a while}",
        "profiles: {}",
        # Its values.
        "clientConnection: {burst: -1}",
        "parallelism: 0",
        "percentageOfNodesToScore: 101",
        "podInitialBackoffSeconds: 0",
        "podInitialBackoffSeconds: 20",
        "leaderElection: {leaseDuration: -1s, renewDeadline: 10s}",
        "leaderElection: {leaseDuration: 5s}",
        "leaderElection: {resourceLock: endpoints}",
        "leaderElection: {renewDeadline: 2s}",
        # Its profiles.
        _two("percentageOfNodesToScore: 10", "percentageOfNodesToScore: -1"),
        "profiles: [{schedulerName: a}, {schedulerName: a}]",
        _two("percentageOfNodesToScore: 10", "").replace("schedulerName: b", "schedulerName: ''"),
        _profile("plugins: {filter: {enabled: [{name: NodeLabel}]}}"),
        _profile("plugins: {filter: {enabled: [{name: EBSLimits}]}}, pluginConfig: [{name: EBSLimits}]"),
        _profile("plugins: {score: {enabled: [{name: NoSuch}]}}"),
        _profile("plugins: {permit: {enabled: [{name: NodeName}]}}"),
        _profile("plugins: {multiPoint: {enabled: [{name: NodeName}, {name: NodeName}]}}"),
        _profile("plugins: {bind: {disabled: [{name: '*'}]}}"),
        _profile("plugins: {queueSort: {disabled: [{name: '*'}]}}"),
        _profile("plugins: {queueSort: {enabled: [{name: PrioritySort}, {name: OurSort}]}}"),
        _two(_sorted_by("PrioritySort"), _sorted_by("OurSort")),
        _two(_SORT_ARGS.format("age"), _SORT_ARGS.format("name")),
        _two(*(f"{_sorted_by('PrioritySort')}, {_SORT_ARGS.format(by)}" for by in ("age", "name"))),
        _profile("pluginConfig: [{name: NodeName}, {name: NodeName}]"),
        # The args of their plugins.
        _args("NodeAffinity", "kind: InterPodAffinityArgs"),
        _args("DefaultPreemption", "minCandidateNodesPercentage: 101, minCandidateNodesAbsolute: -1"),
        _args("DefaultPreemption", "minCandidateNodesPercentage: 0, minCandidateNodesAbsolute: 0"),
        _args("DynamicResources", "filterTimeout: -1s, bindingTimeout: 0s"),
        Wrong(_args("DynamicResources", "filterTimeout: 10s"), gates="DRASchedulerFilterTimeout=false"),
        Wrong(_args("DynamicResources", "bindingTimeout: 10s"), gates="DRADeviceBindingConditions=false"),
        _args("InterPodAffinity", "hardPodAffinityWeight: 101"),
        _affinity("matchExpressions: [{key: 'a b', operator: In, values: ['c d']}]"),
        _affinity("matchExpressions: [{key: a, operator: Like, values: [b]}]"),
        _affinity("matchExpressions: [{key: a, operator: Exists, values: [b]}]"),
        _affinity("matchExpressions: [{key: a, operator: Gt, values: [b]}]"),
        _affinity("matchFields: [{key: metadata.name, operator: Exists}]"),
        _affinity("matchFields: [{key: metadata.name, operator: In}]"),
        _args("NodeResourcesBalancedAllocation", "resources: [{name: cpu, weight: 1}, {name: cpu, weight: 2}]"),
        _args("NodeResourcesFit", "ignoredResources: ['a b'], ignoredResourceGroups: [a/b]"),
        _strategy("type: Best"),
        _strategy("type: LeastAllocated, resources: [{name: cpu, weight: 101}]"),
        _strategy("type: LeastAllocated, requestedToCapacityRatio: {shape: [{utilization: 0, score: 0}]}"),
        _strategy("type: RequestedToCapacityRatio"),
        _shape(""),
        _shape("{utilization: 50, score: 0}, {utilization: 50, score: 10}"),
        _shape("{utilization: 101, score: 11}"),
        _args("PodTopologySpread", "defaultingType: Other"),
        _constraints("{maxSkew: 0}"),
        _constraints("{maxSkew: 1, topologyKey: 'a b', whenUnsatisfiable: Maybe, labelSelector: {}}"),
        _constraints(f"{{maxSkew: 1, {_ZONE}}}", f"{{maxSkew: 2, {_ZONE}}}"),
        _constraints(f"{{maxSkew: 1, {_ZONE}}}").replace("defaultingType: List", "defaultingType: System"),
        _args("VolumeBinding", "bindTimeoutSeconds: -1"),
        Wrong(_args("VolumeBinding", "shape: [{utilization: 0, score: 0}]"), gates="StorageCapacityScoring=false"),
        # Its extenders.
        _extender("prioritizeVerb: prioritize, weight: 0"),
        _extender("tlsConfig: {insecure: true, caFile: ca.crt}"),
        _extender("managedResources: [{name: 'a b'}, {name: cpu}, {name: example.com/x}, {name: example.com/x}]"),
        _profile("pluginConfig: []") + "\n" + _extender("bindVerb: bind}, {urlPrefix: 'http://b', bindVerb: bind"),
    )
)

_REGISTRY: Final = {**IN_TREE_PLUGINS, "OurSort": frozenset({ExtensionPoint.QUEUE_SORT})}
_SHOWN_MAX: Final = 240
_HEAD: Final = """\
# Errors of the configuration

`podium config check FILE` and `podium run` list all errors of a file, each with file, line and field; a reload that is
refused says the same. These are small files without `apiVersion` and `kind`, by the kind of their first error, and
below each, as comments, what is said about it. `OurSort` stands for a plugin of yours.
"""


def errors() -> str:
    """Each kind of error, and the files with it: below each, as comments, all that is said about it."""
    kinds: dict[ErrorKind, list[str]] = {kind: [] for kind in ErrorKind}
    for wrong in WRONG:
        refusals = found_in(wrong)
        comments = "".join(f"# {refusal.text}{refusal.hint}\n" for refusal in refusals)
        kinds[refusals[0].kind].append(f"\n```yaml\n{_example(wrong)}\n{comments}```\n")
    return _HEAD + "".join(
        f"\n## {kind.value[0].upper()}{kind.value[1:]}\n{''.join(examples)}" for kind, examples in kinds.items()
    )


def found_in(wrong: Wrong) -> tuple[FieldError, ...]:
    """Return the errors of a file. Raises: AssertionError if it is not refused."""
    try:
        configuration = load(wrong.file, registry=_REGISTRY, gates=parse_feature_gates([wrong.gates]))
    except ConfigError as error:
        return error.errors
    refusals = unsupported_features(configuration, [*IN_TREE, "OurSort"], _REGISTRY).refusals
    assert refusals, wrong.text
    return refusals


def _example(wrong: Wrong) -> str:
    text = wrong.text if len(wrong.text) <= _SHOWN_MAX else f"{wrong.text[:_SHOWN_MAX]}…"
    return f"# --feature-gates={wrong.gates}\n{text}" if wrong.gates else text
