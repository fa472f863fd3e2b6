"""Requirements on labels that no instance type of the catalogue has.

Owns finding them. Upstream's providers define every well known label for each of their instance types. A catalogue from
a file may lack some, and Karpenter's algebra takes a requirement on a label that an instance type does not mention as
met. So `instance-family In [m6i]` would buy any family. Labels that a NodePool may define itself are not meant: its
nodes have them because it says so.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import msgspec

from podium.objects.core import Pod
from podium.objects.errors import FieldError
from podium.provisioner.apis.dialects import RESERVATION_IDS, describes_instance_types
from podium.provisioner.apis.labels import HOSTNAME, NODE_POOL, current_name
from podium.provisioner.apis.objects import ClusterObjects, NodePool
from podium.provisioner.cloudprovider.catalogue import Catalogue
from podium.provisioner.cloudprovider.reservations import RESERVATION_ID
from podium.provisioner.scheduling.pod_requirements import strict_pod_requirements
from podium.provisioner.scheduling.requirements import Requirement
from podium.provisioner.state.settings import Settings
from podium.provisioner.state.validation import is_provisionable

DEMANDERS_SHOWN_MAX: Final = 3
"""How many of those that require a label a warning names."""
_replace = msgspec.structs.replace


@dataclass(frozen=True, eq=False)
class LabelKnowledge:
    """The labels that the catalogue can answer for, and the requirements that it cannot.

    Attributes:
        well_known: The labels that a NodeClaim need not define, because instance types or offerings do.
        by_pool: By NodePool, the labels that it requires and no instance type has.
        ignored_labels: By label that is left out of account, the NodePools and pods that require it.
    """

    well_known: frozenset[str]
    by_pool: Mapping[str, Sequence[str]] = field(default_factory=dict)
    ignored_labels: Mapping[str, Sequence[str]] = field(default_factory=dict)

    @classmethod
    def of(
        cls, objects: ClusterObjects, pools: Sequence[NodePool], catalogue: Catalogue, settings: Settings
    ) -> LabelKnowledge:
        """Return what is known of the labels that these NodePools and the waiting pods require."""
        if settings.unknown_labels == "met" or not catalogue.instance_types:
            return cls(catalogue.well_known | {RESERVATION_ID})
        labels_there = defined_labels(catalogue)
        groups = frozenset(pool.spec.template.spec.node_class_ref.group for pool in pools) - {""}
        by_pool = {pool.metadata.name: keys for pool in pools if (keys := _unknown_labels(pool, labels_there, groups))}
        # Reservations of an offering are labels that no NodePool needs to define.
        well_known = catalogue.well_known.union(RESERVATION_IDS) & labels_there | {NODE_POOL}
        if settings.unknown_labels == "refused":
            return cls(well_known, by_pool)
        demanders: dict[str, list[str]] = defaultdict(list)
        for name, keys in by_pool.items():
            for key in keys:
                demanders[key].append(f"NodePool {name}")
        # A pod may ask for whatever a NodePool gives its nodes, known to the catalogue or not.
        labels_of_pools = {
            current_name(key)
            for pool in pools
            for key in (
                *pool.spec.template.metadata.labels,
                *(requirement.key for requirement in pool.spec.template.spec.requirements),
                *(_node_class_label(pool),),
            )
        }
        for pod in objects.pods:
            if is_provisionable(pod):
                for requirement in _demands(pod):
                    key = requirement.key
                    is_answered = key in labels_there or key in labels_of_pools or key in (NODE_POOL, HOSTNAME)
                    if key in demanders or not (is_answered or requirement.admits_absence):
                        demanders[key].append(pod.key)
        return cls(well_known.union(demanders), ignored_labels=dict(sorted(demanders.items())))

    def usable_form(self, pool: NodePool) -> NodePool:
        """Return the NodePool without the `minValues` of labels that are left out of account."""
        spec = pool.spec.template.spec
        if not self.ignored_labels:
            return pool
        # No instance type has any value of them, so their minimum could never be met.
        requirements = tuple(
            _replace(requirement, min_values=None)
            if current_name(requirement.key) in self.ignored_labels
            else requirement
            for requirement in spec.requirements
        )
        template = _replace(pool.spec.template, spec=_replace(spec, requirements=requirements))
        return _replace(pool, spec=_replace(pool.spec, template=template))

    def warnings(self) -> Iterator[str]:
        """Yield a sentence for each label that is left out of account."""
        for key, demanders in self.ignored_labels.items():
            names = ", ".join(demanders[:DEMANDERS_SHOWN_MAX])
            hidden_count = len(demanders) - DEMANDERS_SHOWN_MAX
            suffix = f" and {hidden_count:,} more" if hidden_count > 0 else ""
            yield f"label {key} is left out of account, since no instance type has it; required by {names}{suffix}"

    def refusal_of(self, pool: NodePool) -> str | None:
        """Return why nothing can be bought from the NodePool, or None if the catalogue can answer for its labels."""
        keys = self.by_pool.get(pool.metadata.name)
        if not keys or self.ignored_labels:
            return None
        labels = "label" if len(keys) == 1 else "labels"
        return f"no instance type of the catalogue has the {labels} {', '.join(keys)}, which the NodePool requires"


def defined_labels(catalogue: Catalogue) -> frozenset[str]:
    """Return the labels that an instance type or an offering of the catalogue has."""
    return frozenset(
        requirement.key
        for instance_type in catalogue.instance_types
        for requirements in (
            instance_type.requirements,
            *(offering.requirements for offering in instance_type.offerings),
        )
        for requirement in requirements
        if requirement.complement or requirement.values
    )


def _unknown_labels(pool: NodePool, labels_there: frozenset[str], groups: frozenset[str]) -> list[str]:
    """Return the labels that the NodePool requires of instance types and that none has, in order of name."""
    template = pool.spec.template
    template_keys = {*map(current_name, template.metadata.labels), _node_class_label(pool)}
    requirements = (
        Requirement.of(requirement.key, requirement.operator, requirement.values)
        for requirement in template.spec.requirements
    )
    return sorted(
        {
            requirement.key
            for requirement in requirements
            if not requirement.admits_absence
            and requirement.key not in labels_there | template_keys
            and describes_instance_types(requirement.key, groups)
        }
    )


def _node_class_label(pool: NodePool) -> str:
    reference = pool.spec.template.spec.node_class_ref
    return f"{reference.group}/{reference.kind.lower()}"


def _demands(pod: Pod) -> Iterable[Requirement]:
    try:
        return strict_pod_requirements(pod.spec)
    except FieldError:
        return ()
