"""The rules by which the API server refuses a NodePool.

Owns the rules of its CustomResourceDefinition for fields that planning reads. They are for NodePools in files, which no
API server has seen; recorded questions have theirs as they are.

Source: karpenter pkg/apis/crds/karpenter.sh_nodepools.yaml, v1.15.0.
Differs: `requirements` and `nodeClassRef` may be left out, since `provisioner.state.manifests` completes them. A label
is not refused for its domain alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from podium.objects.core import Taint
from podium.objects.errors import FieldError
from podium.objects.selectors import is_label_value, is_qualified_name
from podium.provisioner.apis.budgets import DisruptionBudgets
from podium.provisioner.apis.labels import HOSTNAME, NODE_POOL
from podium.provisioner.apis.objects import NEVER, LabelRequirement, NodePool, NodePoolSpec

_DURATION: Final = re.compile(r"([0-9]+[smh])+", re.ASCII)
_SCHEDULE: Final = re.compile(
    r"^(@(annually|yearly|monthly|weekly|daily|midnight|hourly))|((.+)\s(.+)\s(.+)\s(.+)\s(.+))$"
)
"""The whole test that the API server makes: far more passes it than Karpenter can read."""

_EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_RESERVED_KEYS: Final = (HOSTNAME, NODE_POOL)
_REQUIREMENTS_MAX: Final = 100


def check_node_pool(pool: NodePool) -> None:
    """Refuse a NodePool that could not be created.

    Raises:
        FieldError: a field has a value that it may not have.
    """
    spec, template = pool.spec, pool.spec.template
    _check_number(spec.weight, "spec.weight", 1, 100)
    _check_number(spec.replicas, "spec.replicas", 0)
    _check_static(spec)
    _check_duration(spec.disruption.consolidate_after, "spec.disruption.consolidateAfter", or_never=True)
    _check_budgets(spec.disruption.budgets)
    for key, value in template.metadata.labels.items():
        _check_label(key, (value,), f"spec.template.metadata.labels[{key}]")
    _check_requirements(template.spec.requirements)
    _check_taints(template.spec.taints, "spec.template.spec.taints")
    _check_taints(template.spec.startup_taints, "spec.template.spec.startupTaints")
    _check_duration(template.spec.expire_after, "spec.template.spec.expireAfter", or_never=True)
    _check_duration(template.spec.termination_grace_period, "spec.template.spec.terminationGracePeriod")


def _check_budgets(budgets: object) -> None:
    """Refuse budgets that could not be created. A schedule that is taken all the same lets no node go."""
    items = budgets if isinstance(budgets, list) else ()
    taken_paths = {
        f"spec.disruption.budgets[{index}].schedule"
        for index, item in enumerate(items)
        if isinstance(item, Mapping) and _SCHEDULE.search(str(item.get("schedule")))
    }
    for error in DisruptionBudgets.parse(budgets).errors:
        if error.path not in taken_paths:
            raise error


def _check_static(spec: NodePoolSpec) -> None:
    if spec.replicas is None:
        return
    if spec.weight is not None:
        raise FieldError("spec.weight", "is not for a NodePool with replicas")
    for name in spec.limits or {}:
        if name != "nodes":
            raise FieldError(f"spec.limits[{name}]", "is not for a NodePool with replicas, which only nodes may limit")


def _check_requirements(requirements: Sequence[LabelRequirement]) -> None:
    path = "spec.template.spec.requirements"
    if len(requirements) > _REQUIREMENTS_MAX:
        raise FieldError(path, f"has {len(requirements)} requirements, more than {_REQUIREMENTS_MAX}")
    for index, requirement in enumerate(requirements):
        item_path = f"{path}[{index}]"
        _check_label(requirement.key, requirement.values, item_path)
        _check_number(requirement.min_values, f"{item_path}.minValues", 1, 50)
        if requirement.operator == "In" and len(requirement.values) < max(1, requirement.min_values or 0):
            least = f"as many values as minValues, {requirement.min_values}" if requirement.values else "one value"
            # With minValues, fewer values than that could never be met.
            raise FieldError(f"{item_path}.values", f"In takes at least {least}")


def _check_label(key: str, values: Iterable[str], path: str) -> None:
    if not is_qualified_name(key):
        raise FieldError(path, f'"{key}" cannot be the key of a label')
    if key in _RESERVED_KEYS:
        raise FieldError(path, f"{key} is set for each node, and cannot be chosen")
    for value in values:
        if not is_label_value(value):
            raise FieldError(path, f'"{value}" cannot be the value of a label')


def _check_taints(taints: Sequence[Taint], path: str) -> None:
    for index, taint in enumerate(taints):
        if not is_qualified_name(taint.key):
            raise FieldError(f"{path}[{index}].key", f'"{taint.key}" cannot be the key of a taint')
        if taint.effect not in _EFFECTS:
            raise FieldError(f"{path}[{index}].effect", f'"{taint.effect}" is not one of {", ".join(_EFFECTS)}')


def _check_number(number: int | None, path: str, least: int, maximum: int | None = None) -> None:
    if number is None:
        return
    if number < least:
        raise FieldError(path, f"{number} is less than {least}")
    if maximum is not None and number > maximum:
        raise FieldError(path, f"{number} is more than {maximum}")


def _check_duration(text: str | None, path: str, *, or_never: bool = False) -> None:
    if text is None or (or_never and text == NEVER) or _DURATION.fullmatch(text):
        return
    also = f" or {NEVER}" if or_never else ""
    raise FieldError(path, f'must be hours, minutes and seconds such as 1h30m{also}, not "{text}"')
