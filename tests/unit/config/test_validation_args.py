from dataclasses import replace

import pytest

from podium.config import args as a
from podium.config.feature_gates import DEFAULT_GATES, default_gates
from podium.config.field_errors import ErrorList
from podium.config.releases import RELEASES
from podium.config.validation_args import ARGS_VALIDATORS

CAPACITY_OFF = replace(DEFAULT_GATES, on_gates=DEFAULT_GATES.on_gates - {"StorageCapacityScoring"})
SHAPE = (a.UtilizationShapePoint(0, 10),)
RATIO = "RequestedToCapacityRatio"


def errors_of(args, gates=DEFAULT_GATES):
    errors = ErrorList()
    ARGS_VALIDATORS[type(args)]("at", args, gates, errors)
    return [error.text for error in errors.errors]


def strategy(kind="LeastAllocated", *points, resources=(), ratio=None):
    if points:
        ratio = a.RequestedToCapacityRatio(tuple(a.UtilizationShapePoint(*point) for point in points))
    return a.NodeResourcesFitArgs(scoring_strategy=a.ScoringStrategy(kind, resources, ratio))


def spread(*constraints, kind="List"):
    return a.PodTopologySpreadArgs(tuple(constraints), kind)


def constraint(**fields):
    return a.TopologySpreadConstraint(
        **{"max_skew": 1, "topology_key": "zone", "when_unsatisfiable": "DoNotSchedule"} | fields
    )


def test_every_args_type_has_its_validator_and_its_defaults_are_good():
    assert set(ARGS_VALIDATORS) == set(a.ARGS_BY_PLUGIN.values())
    good = {a.VolumeBindingArgs: a.VolumeBindingArgs(shape=SHAPE)}
    assert [errors_of(good.get(cls, cls())) for cls in ARGS_VALIDATORS] == [[]] * 8


@pytest.mark.parametrize(
    ("args", "errors"),
    [
        (
            a.DefaultPreemptionArgs(-1, -1),
            [
                "at.minCandidateNodesPercentage: Invalid value: -1: not in valid range [0, 100]",
                "at.minCandidateNodesAbsolute: Invalid value: -1: not in valid range [0, inf)",
            ],
        ),
        (
            a.DefaultPreemptionArgs(101, 0),
            ["at.minCandidateNodesPercentage: Invalid value: 101: not in valid range [0, 100]"],
        ),
        (
            a.DefaultPreemptionArgs(0, 0),
            [
                (
                    "at.minCandidateNodesPercentage: Invalid value: 0: "
                    "cannot be zero at the same time as minCandidateNodesAbsolute"
                ),
                (
                    "at.minCandidateNodesAbsolute: Invalid value: 0: "
                    "cannot be zero at the same time as minCandidateNodesPercentage"
                ),
            ],
        ),
        (a.DefaultPreemptionArgs(0, 1), []),
        (
            a.InterPodAffinityArgs(101),
            ["at.hardPodAffinityWeight: Invalid value: 101: not in valid range [0, 100]"],
        ),
        (
            a.InterPodAffinityArgs(-1),
            ["at.hardPodAffinityWeight: Invalid value: -1: not in valid range [0, 100]"],
        ),
        (
            a.NodeAffinityArgs(
                {
                    "requiredDuringSchedulingIgnoredDuringExecution": {
                        "nodeSelectorTerms": [{"matchFields": [{"key": "a", "operator": "In", "values": []}]}]
                    }
                }
            ),
            [
                (
                    "at.addedAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchFields[0]"
                    ".values: Invalid value: []: must have one element"
                )
            ],
        ),
        (
            a.NodeResourcesBalancedAllocationArgs((a.ResourceSpec("cpu"), a.ResourceSpec("cpu", 2))),
            ['at.resources[1].name: Duplicate value: "cpu"', "at.resources[1].weight: Invalid value: 2: must be 1"],
        ),
        (
            a.NodeResourcesFitArgs(ignored_resource_groups=("a/b",)),
            ["at.ignoredResourceGroups[0]: Invalid value: \"a/b\": resource group name can't contain '/'"],
        ),
        (
            strategy("Nonsense"),
            [
                (
                    'at.scoringStrategy.type: Unsupported value: "Nonsense": '
                    'supported values: "LeastAllocated", "MostAllocated", "RequestedToCapacityRatio"'
                )
            ],
        ),
        (
            strategy(resources=(a.ResourceSpec("cpu", 101), a.ResourceSpec("memory", -1))),
            [
                (
                    "at.scoringStrategy.resources[0].weight: Invalid value: 101: "
                    "resource weight of cpu not in valid range (0, 100]"
                ),
                (
                    "at.scoringStrategy.resources[1].weight: Invalid value: -1: "
                    "resource weight of memory not in valid range (0, 100]"
                ),
            ],
        ),
        (
            strategy("MostAllocated", (0, 0)),
            [
                (
                    "at.scoringStrategy.requestedToCapacityRatio: Forbidden: "
                    "must be nil when type is not RequestedToCapacityRatio"
                )
            ],
        ),
        (
            strategy(RATIO),
            [
                (
                    "at.scoringStrategy.requestedToCapacityRatio: Required value: "
                    "must be specified when type is RequestedToCapacityRatio"
                )
            ],
        ),
        (
            strategy(RATIO, ratio=a.RequestedToCapacityRatio()),
            ["at.scoringStrategy.requestedToCapacityRatio.shape: Required value: at least one point must be specified"],
        ),
        (
            strategy(RATIO, (50, 5), (50, 6), (40, 7)),
            [
                (
                    "at.scoringStrategy.requestedToCapacityRatio.shape[1].utilization: Invalid value: 50: "
                    "values must be sorted in increasing order"
                )
            ],
        ),
        (
            strategy(RATIO, (-1, 11), (101, -1)),
            [
                f"at.scoringStrategy.requestedToCapacityRatio.shape[{error}"
                for error in (
                    "0].utilization: Invalid value: -1: not in valid range [0, 100]",
                    "0].score: Invalid value: 11: not in valid range [0, 10]",
                    "1].utilization: Invalid value: 101: not in valid range [0, 100]",
                    "1].score: Invalid value: -1: not in valid range [0, 10]",
                )
            ],
        ),
        (strategy(RATIO, (0, 0), (100, 10)), []),
        (
            spread(kind="Other"),
            ['at.defaultingType: Unsupported value: "Other": supported values: "System", "List"'],
        ),
        (
            spread(constraint(), kind="System"),
            ['at.defaultingType: Invalid value: "System": when .defaultConstraints are not empty'],
        ),
        (
            spread(constraint(max_skew=0, topology_key="", when_unsatisfiable="")),
            [
                "at.defaultConstraints[0].maxSkew: Invalid value: 0: not in valid range (0, inf)",
                "at.defaultConstraints[0].topologyKey: Required value: can not be empty",
                "at.defaultConstraints[0].whenUnsatisfiable: Required value: can not be empty",
            ],
        ),
        (
            spread(constraint(when_unsatisfiable="Maybe")),
            [
                (
                    'at.defaultConstraints[0].whenUnsatisfiable: Unsupported value: "Maybe": '
                    'supported values: "DoNotSchedule", "ScheduleAnyway"'
                )
            ],
        ),
        (
            spread(constraint(label_selector={})),
            [
                (
                    "at.defaultConstraints[0].labelSelector: Forbidden: "
                    "constraint must not define a selector, as they deduced for each pod"
                )
            ],
        ),
        (
            spread(constraint(), constraint(when_unsatisfiable="ScheduleAnyway"), constraint(max_skew=2)),
            ['at.defaultConstraints[2]: Duplicate value: "{zone, DoNotSchedule}"'],
        ),
        (
            a.VolumeBindingArgs(-1, SHAPE),
            ["at.bindTimeoutSeconds: Invalid value: -1: invalid BindTimeoutSeconds, should not be a negative value"],
        ),
        (
            a.DynamicResourcesArgs(-1.0, 0.5),
            [
                'at.filterTimeout: Invalid value: "-1s": must be zero or positive',
                'at.bindingTimeout: Invalid value: "500ms": must be at least 1 second',
            ],
        ),
        (a.DynamicResourcesArgs(0.0, 1.0), []),
    ],
)
def test_rule_and_its_message(args, errors):
    assert errors_of(args) == errors


def test_names_that_are_no_labels_are_named():
    fit = errors_of(a.NodeResourcesFitArgs(ignored_resources=("bad name",), ignored_resource_groups=("b@d",)))
    assert fit[0].startswith('at.ignoredResources[0]: Invalid value: "bad name": name part must consist of')
    assert fit[1].startswith('at.ignoredResourceGroups[0]: Invalid value: "b@d": name part must consist of')
    (key,) = errors_of(spread(constraint(topology_key="bad key!")))
    assert key.startswith('at.defaultConstraints[0].topologyKey: Invalid value: "bad key!": name part must consist of')


@pytest.mark.parametrize(
    ("gate", "errors"),
    [
        (
            "DRASchedulerFilterTimeout",
            ["at.filterTimeout: Forbidden: DRASchedulingFilterTimeout feature gate is disabled"],
        ),
        (
            "DRADeviceBindingConditions",
            [
                (
                    "at.bindingTimeout: Forbidden: "
                    "DRADeviceBindingConditions or DRAResourceClaimDeviceStatus feature gate is disabled"
                )
            ],
        ),
    ],
)
def test_timeout_whose_gate_is_off_is_forbidden(gate, errors):
    assert (
        errors_of(a.DynamicResourcesArgs(), replace(DEFAULT_GATES, on_gates=DEFAULT_GATES.on_gates - {gate})) == errors
    )


def test_storage_shape_is_checked_where_its_gate_is_on():
    assert errors_of(a.VolumeBindingArgs(shape=SHAPE)) == []
    assert errors_of(a.VolumeBindingArgs()) == ["at.shape: Required value: at least one point must be specified"]


@pytest.mark.parametrize("gates", [CAPACITY_OFF, default_gates(RELEASES["1.36"])])
def test_storage_shape_is_refused_where_its_gate_is_off(gates):
    (error,) = errors_of(a.VolumeBindingArgs(1, SHAPE), gates)
    assert error == (
        'at.shape: Invalid value: [{"utilization":0,"score":10}]: unexpected field `shape`, '
        "remove it or turn on the feature gate StorageCapacityScoring"
    )
