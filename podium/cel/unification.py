"""Assignability of types, and the substitutions of type variables."""

from __future__ import annotations

from podium.cel.types import Type, is_optional

_DYNAMIC = frozenset({"dyn", "any"})
_TOP = frozenset({"dyn", "any", "error"})
_NULLABLE = frozenset({"opaque", "struct", "any", "duration", "timestamp"})
_PARAMETRIC = frozenset({"opaque", "list", "map"})


def is_dynamic(candidate: Type) -> bool:
    """Whether values of this static type may have any type at run time."""
    return candidate.kind in _DYNAMIC


class Substitutions:
    """The bindings of type variables. A failed attempt changes no binding.

    Cost: linear in the size of the types, independent of the number of variables.
    """

    def __init__(self) -> None:
        self._bound: dict[Type, Type] = {}
        self._journal: list[tuple[Type, Type | None]] = []
        self._variables = 0

    def fresh(self) -> Type:
        """A new type variable."""
        self._variables += 1
        return Type("parameter", f"_var{self._variables}")

    def assignable(self, left: Type, right: Type) -> bool:
        """Whether the types are compatible. If so, their type variables are bound accordingly."""
        return self.all_assignable((left,), (right,))

    def all_assignable(self, left: tuple[Type, ...], right: tuple[Type, ...]) -> bool:
        """Whether the types are compatible pair by pair."""
        self._journal.clear()
        if self._all(left, right):
            return True
        for variable, before in reversed(self._journal):
            if before is None:
                del self._bound[variable]
            else:
                self._bound[variable] = before
        return False

    def resolve(self, target: Type, *, unbound: Type | None = None) -> Type:
        """The type with its variables replaced. Unbound variables are replaced by `unbound`, if given."""
        bound = self._bound.get(target)
        if bound is not None:
            return self.resolve(bound, unbound=unbound)
        if target.kind == "parameter" and unbound is not None:
            return unbound
        if not target.parameters:
            return target
        return target._replace(parameters=tuple(self.resolve(each, unbound=unbound) for each in target.parameters))

    def instantiated(self, types: tuple[Type, ...]) -> tuple[Type, ...]:
        """The types of a signature with fresh type variables."""
        names: dict[Type, Type] = {}
        return tuple(self._renamed(each, names) for each in types)

    def _renamed(self, target: Type, names: dict[Type, Type]) -> Type:
        if target.kind == "parameter":
            if target not in names:
                names[target] = self.fresh()
            return names[target]
        if not target.parameters:
            return target
        return target._replace(parameters=tuple(self._renamed(each, names) for each in target.parameters))

    def _all(self, left: tuple[Type, ...], right: tuple[Type, ...]) -> bool:
        return len(left) == len(right) and all(self._assignable(a, b) for a, b in zip(left, right, strict=True))

    def _assignable(self, left: Type, right: Type) -> bool:
        if right.kind == "parameter":
            valid, had_one = self._substitutes(left, right)
            if valid or had_one:
                return valid
        if left.kind == "parameter":
            return self._substitutes(right, left)[0]
        if left.kind in _TOP or right.kind in _TOP:
            return True
        if left.kind == "null" or right.kind == "null":
            other = right if left.kind == "null" else left
            return other.kind in _NULLABLE or other.kind == "null"
        if left.kind == "type":
            return right.kind == "type"
        if left.kind in _PARAMETRIC:
            return left[:2] == right[:2] and self._all(left.parameters, right.parameters)
        return left == right

    def _substitutes(self, candidate: Type, variable: Type) -> tuple[bool, bool]:
        """Whether the variable can be bound to the candidate, and whether it was bound before."""
        if candidate == variable:
            return True, True
        bound = self._bound.get(variable)
        if bound is None:
            if not self._free_of(variable, candidate):
                return False, False
            self._bind(variable, candidate)
            return True, False
        if candidate == bound:
            return True, True
        if not self._assignable(candidate, bound):
            return False, True
        general = most_general(candidate, bound)
        if self._free_of(variable, general):
            self._bind(variable, general)
        return True, True

    def _bind(self, variable: Type, target: Type) -> None:
        self._journal.append((variable, self._bound.get(variable)))
        self._bound[variable] = target

    def _free_of(self, variable: Type, target: Type) -> bool:
        """Whether the variable does not occur in the type."""
        if variable == target:
            return False
        if target.kind == "parameter":
            bound = self._bound.get(target)
            return bound is None or self._free_of(variable, bound)
        return all(self._free_of(variable, each) for each in target.parameters)


def most_general(left: Type, right: Type) -> Type:
    """The more general of two compatible types."""
    return left if _less_specific(left, right) else right


def _less_specific(left: Type, right: Type) -> bool:
    if is_dynamic(left) or left.kind == "parameter":
        return True
    if is_dynamic(right) or right.kind == "parameter" or left.kind != right.kind:
        return False
    if left.kind == "type":
        return True
    if left.kind in _PARAMETRIC:
        return (
            left.name == right.name
            and len(left.parameters) == len(right.parameters)
            and all(_less_specific(a, b) for a, b in zip(left.parameters, right.parameters, strict=True))
        )
    return left == right


def unwrapped(candidate: Type) -> tuple[Type, bool]:
    """The value type of an optional type, and whether the type is optional."""
    return (candidate.parameters[0], True) if is_optional(candidate) else (candidate, False)
