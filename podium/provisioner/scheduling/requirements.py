"""Requirements on the labels of a node: which values each label may have.

Owns the algebra: what a requirement allows, what two of them allow together, and why two sets cannot be met by one
node. Values are immutable and shared. Never looks at a pod, a node or an instance type.

Source: karpenter pkg/scheduling/requirement.go and requirements.go, v1.15.0.
Differs: where upstream names one of several labels or hints in random order, here it is the first by name, and
conflicts are sorted. `Lt` of the smallest int64 allows nothing; upstream's bound wraps around and allows every integer.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, KeysView, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Final, Literal, TypeAlias

from msgspec import Struct

from podium.objects.errors import FieldError
from podium.objects.quantity import INT64_MAX, INT64_MIN
from podium.objects.selectors import parse_int64
from podium.provisioner.apis.labels import CSI_ZONES, HOSTNAME, current_name

EffectiveOperator: TypeAlias = Literal["In", "NotIn", "Exists", "DoesNotExist"]
"""The operators that a requirement reports; one with bounds reports `Exists` or `NotIn`."""

OPERATORS: Final = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Gte", "Lte")
"""The operators that a requirement can be made from."""

VALUES_SHOWN_MAX: Final = 5
"""How many values the text of a requirement lists."""

_NO_VALUES: Final[frozenset[str]] = frozenset()
_BOUNDS: Final = frozenset({"Gt", "Lt", "Gte", "Lte"})
# Every value of a label is parsed for each bound it meets; instance types have few different ones.
_integer = functools.lru_cache(maxsize=65536)(parse_int64)


class Requirement(Struct, frozen=True, gc=False):
    """The values that one label may have.

    Invariant: bounds stand only in a complement.

    Attributes:
        key: The label, by its current name.
        complement: Whether `values` are those that are excluded, and not those that are allowed.
        values: The values that are allowed or excluded.
        gte: The smallest integer that is allowed. With a bound, a value that is no integer is not allowed.
        lte: The largest integer that is allowed.
        min_values: How many different values the instance types of a NodeClaim must offer.
    """

    key: str
    complement: bool
    values: frozenset[str] = _NO_VALUES
    gte: int | None = None
    lte: int | None = None
    min_values: int | None = None

    @classmethod
    def of(
        cls, key: str, operator: str, values: Sequence[str] = (), *, min_values: int | None = None, path: str = ""
    ) -> Requirement:
        """Make a requirement from its form in the API. Old names of labels are replaced.

        As upstream, `In` without values means `DoesNotExist`, and values of `Exists` and `DoesNotExist` are ignored.

        Args:
            path: the requirement's path, for errors.

        Raises:
            FieldError: the operator is unknown, or a bound is not one integer.
        """
        key = current_name(key)
        if operator == "In":
            return cls(key, False, frozenset(values), None, None, min_values)
        if operator == "NotIn":
            return cls(key, True, frozenset(values), None, None, min_values)
        if operator == "Exists":
            return cls(key, True, _NO_VALUES, None, None, min_values)
        if operator == "DoesNotExist":
            return cls(key, False, _NO_VALUES, None, None, min_values)
        if operator not in _BOUNDS:
            raise FieldError(_joined_texts(path, "operator"), f'"{operator}" is not one of {", ".join(OPERATORS)}')
        limit = _parse_bound(operator, values, path)
        if operator == "Gte":
            return cls(key, True, _NO_VALUES, limit, None, min_values)
        if operator == "Lte":
            return cls(key, True, _NO_VALUES, None, limit, min_values)
        if operator == "Gt":
            # No label can be greater than the largest integer. minValues is lost there, as upstream.
            return cls(key, True, _NO_VALUES, limit + 1, None, min_values) if limit < INT64_MAX else cls(key, False)
        return cls(key, True, _NO_VALUES, None, limit - 1, min_values) if limit > INT64_MIN else cls(key, False)

    @property
    def operator(self) -> EffectiveOperator:
        """The operator that describes the values, bounds aside."""
        if self.complement:
            return "NotIn" if self.values else "Exists"
        return "In" if self.values else "DoesNotExist"

    @property
    def admits_absence(self) -> bool:
        """Return True if a node without the label meets the requirement: the operator is `NotIn` or `DoesNotExist`."""
        return self.complement == bool(self.values)

    def has(self, value: str) -> bool:
        """Return True if the label may have this value."""
        return (value in self.values) != self.complement and _is_within(value, self.gte, self.lte)

    def has_intersection(self, requirement: Requirement) -> bool:
        """Return True if both allow some value.

        Two complements with bounds that overlap always do: excluded integers are not counted, as upstream.
        """
        if not self.complement and not requirement.complement:
            return not self.values.isdisjoint(requirement.values)
        gte, lte = _largest(self.gte, requirement.gte), _smallest(self.lte, requirement.lte)
        if gte is not None and lte is not None and gte > lte:
            return False
        # As upstream: whether any integer between the bounds is not excluded is not looked for.
        if self.complement and requirement.complement:
            return True
        concrete, exclusions = (
            (requirement.values, self.values) if self.complement else (self.values, requirement.values)
        )
        if gte is None and lte is None:
            return not concrete <= exclusions
        return any(value not in exclusions and _is_within(value, gte, lte) for value in concrete)

    def intersection(self, requirement: Requirement) -> Requirement:
        """Return the requirement that allows what both allow."""
        gte, lte = _largest(self.gte, requirement.gte), _smallest(self.lte, requirement.lte)
        min_values = _largest(self.min_values, requirement.min_values)
        if gte is not None and lte is not None and gte > lte:
            return Requirement(self.key, False, _NO_VALUES, None, None, min_values)
        complement = False
        if self.complement:
            if requirement.complement:
                complement, values = True, self.values | requirement.values
            else:
                values = requirement.values - self.values
        elif requirement.complement:
            values = self.values - requirement.values
        else:
            values = self.values & requirement.values
        if gte is not None or lte is not None:
            values = frozenset(value for value in values if _is_within(value, gte, lte))
            # The bounds have done their work on a concrete set. Upstream drops them, too, and texts and hashes would
            # differ.
            if not complement:
                gte = lte = None
        return Requirement(self.key, complement, values, gte, lte, min_values)

    def __str__(self) -> str:
        """Return the text that upstream's messages show: `zone In [a b]`, `cpu Exists >=4 minValues 2`."""
        text = f"{self.key} {self.operator}"
        if self.values:
            values = sorted(self.values)
            if len(values) > VALUES_SHOWN_MAX:
                values[VALUES_SHOWN_MAX:] = [f"and {len(values) - VALUES_SHOWN_MAX} others"]
            text += f" [{' '.join(values)}]"
        if self.gte is not None:
            text += f" >={self.gte}"
        if self.lte is not None:
            text += f" <={self.lte}"
        if self.min_values is not None:
            text += f" minValues {self.min_values}"
        return text


class Requirements:
    """Requirements by key; immutable. A label without a requirement may have any value, and may be absent."""

    __slots__ = ("_by_key",)

    def __init__(self, requirements: Iterable[Requirement] = ()) -> None:
        """Intersect requirements on one key into one."""
        self._by_key: dict[str, Requirement] = {}
        self._take(requirements)

    @classmethod
    def of_labels(cls, labels: Mapping[str, str]) -> Requirements:
        """Return the requirement of exactly these labels."""
        return cls(
            Requirement.of(key, "In", (value,))
            for key, value in labels.items()
            # Storage drivers set an empty zone on nodes outside their zones, which says nothing about the node's own.
            if value or key not in CSI_ZONES
        )

    def add(self, *requirements: Requirement) -> Requirements:
        """Return these requirements and more."""
        return self.union(requirements)

    def union(self, requirements: Iterable[Requirement]) -> Requirements:
        """Return these requirements and others; those on one key become their intersection."""
        # Most pods require nothing of labels, so most unions need no copy.
        if isinstance(requirements, Requirements) and not requirements._by_key:
            return self
        result = Requirements.__new__(Requirements)
        result._by_key = self._by_key.copy()
        result._take(requirements)
        return result

    def get(self, key: str) -> Requirement:
        """Return the requirement on this key: `Exists` if the key is unrestricted."""
        requirement = self._by_key.get(key)
        return Requirement(key, True) if requirement is None else requirement

    def keys(self) -> KeysView[str]:
        """Return the keys that have a requirement."""
        return self._by_key.keys()

    def intersects(self, incoming: Requirements) -> bool:
        """Return True if a node can meet both sets, as far as both speak of the same labels."""
        return next(self._conflicting(incoming), None) is None

    def conflicts(self, incoming: Requirements) -> tuple[str, ...]:
        """Return the reasons why `intersects` says no: a sentence for each label, sorted."""
        return tuple(
            sorted(
                f"key {existing.key}, {incoming_requirement} not in {existing}"
                for existing, incoming_requirement in self._conflicting(incoming)
            )
        )

    def is_compatible(self, incoming: Requirements, allow_undefined: AbstractSet[str] = _NO_VALUES) -> bool:
        """Return True if these requirements can meet the incoming ones.

        A label that only the incoming set requires is not met, unless its absence is admitted.

        Args:
            allow_undefined: labels that these requirements need not define: the well known ones for a NodeClaim or an
                offering, none for an existing node.
        """
        if not incoming._by_key:
            return True
        return next(self._undefined_keys(incoming, allow_undefined), None) is None and self.intersects(incoming)

    def incompatibilities(
        self, incoming: Requirements, allow_undefined: AbstractSet[str] = _NO_VALUES
    ) -> tuple[str, ...]:
        """Return why `is_compatible` says no: the first label by name that is unknown here, else all conflicts."""
        # Upstream looks at unknown keys first and reports one of them, in the order of a Go map.
        unknown = min(self._undefined_keys(incoming, allow_undefined), default=None)
        if unknown is None:
            return self.conflicts(incoming)
        return (f'label "{unknown}" does not have known values{self._hint(unknown, allow_undefined)}',)

    def __contains__(self, key: object) -> bool:
        """Return True if the key has a requirement."""
        return key in self._by_key

    def __iter__(self) -> Iterator[Requirement]:
        """Return the requirements, one for each key."""
        return iter(self._by_key.values())

    def __len__(self) -> int:
        """Return the number of keys that have a requirement."""
        return len(self._by_key)

    def __eq__(self, value: object) -> bool:
        """Return True if each key has the same requirement."""
        return self._by_key == value._by_key if isinstance(value, Requirements) else NotImplemented

    def __hash__(self) -> int:
        return hash(frozenset(self._by_key.values()))

    def __str__(self) -> str:
        """Return the text that upstream's messages show: sorted, without the hostname."""
        return ", ".join(sorted(str(requirement) for key, requirement in self._by_key.items() if key != HOSTNAME))

    def __repr__(self) -> str:
        return f"<Requirements {self}>"

    def _take(self, requirements: Iterable[Requirement]) -> None:
        by_key = self._by_key
        for requirement in requirements:
            existing = by_key.get(requirement.key)
            by_key[requirement.key] = requirement if existing is None else requirement.intersection(existing)

    def _conflicting(self, incoming: Requirements) -> Iterator[tuple[Requirement, Requirement]]:
        """Yield the pairs of requirements on one key that no value meets, of which one does not admit absence."""
        requirements, incoming_requirements = self._by_key, incoming._by_key
        # The smaller set is gone through: pods name few labels, nodes dozens.
        for key in requirements if len(requirements) <= len(incoming_requirements) else incoming_requirements:
            existing, requirement = requirements.get(key), incoming_requirements.get(key)
            if (
                existing is None
                or requirement is None
                # Interned: nodes and instance types share most requirements, and one meets itself.
                or existing is requirement
                or existing.has_intersection(requirement)
            ):
                continue
            # Two rules that a label's absence meets do not conflict: the node need not have it.
            if not (requirement.admits_absence and existing.admits_absence):
                yield existing, requirement

    def _undefined_keys(self, incoming: Requirements, allow_undefined: AbstractSet[str]) -> Iterator[str]:
        """Yield the keys of the incoming set that must be defined here and are not."""
        requirements = self._by_key
        for key, requirement in incoming._by_key.items():
            if key not in requirements and key not in allow_undefined and not requirement.admits_absence:
                yield key

    def _hint(self, key: str, allow_undefined: AbstractSet[str]) -> str:
        """Return the label that the key may have been meant to be."""
        domain, slash, name = key.partition("/")
        ending = name if slash else domain
        for label in (*sorted(allow_undefined), *sorted(self._by_key)):
            if key in label or label.endswith(ending):
                return f' (typo of "{label}"?)'
        return ""


def _parse_bound(operator: str, values: Sequence[str], path: str) -> int:
    if len(values) != 1:
        raise FieldError(_joined_texts(path, "values"), f"{operator} takes one integer, not {len(values)} values")
    limit = parse_int64(values[0])
    if limit is None:
        raise FieldError(_joined_texts(path, "values[0]"), f'{operator} takes an integer, not "{values[0]}"')
    return limit


def _joined_texts(path: str, field: str) -> str:
    return f"{path}.{field}" if path else field


def _is_within(value: str, gte: int | None, lte: int | None) -> bool:
    if gte is None and lte is None:
        return True
    # A bound on a value that is no integer is never met, as upstream.
    number = _integer(value)
    return number is not None and (gte is None or number >= gte) and (lte is None or number <= lte)


def _largest(first: int | None, second: int | None) -> int | None:
    if first is None or second is None:
        return second if first is None else first
    return max(first, second)


def _smallest(first: int | None, second: int | None) -> int | None:
    if first is None or second is None:
        return second if first is None else first
    return min(first, second)
