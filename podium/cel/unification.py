"""Assignability of types, and the substitutions of type variables."""

from __future__ import annotations

from podium.cel.types import Type, is_optional

_DYNAMIC = frozenset({"dyn", "any"})
_TOP = frozenset({"dyn", "any", "error"})
_NULLABLE = frozenset({"opaque", "struct", "any", "duration", "timestamp"})
_PARAMETRIC = frozenset({"opaque", "list", "map"})


def is_dynamic(candidate: Type) -> bool:
    """Tell whether values of this static type may have any type at run time."""
    return candidate.kind in _DYNAMIC


def is_plain(candidate: Type) -> bool:
    """Tell whether the type has no parameters, and is no type variable."""
    return not candidate.parameters and candidate.kind != "parameter"


class Substitutions:
    """The bindings of type variables. A failed attempt changes no binding.

    Attributes:
        variables: the number of variables that were made so far.

    Cost: linear in the size of the types, independent of the number of variables.
    """

    def __init__(self) -> None:
        self._bound: dict[Type, Type] = {}
        self._journal: list[tuple[Type, Type | None]] = []
        self.variables = 0
        self._resolved: dict[tuple[int, Type | None], tuple[Type, Type]] = {}
        """What types resolve to, by identity: the type of each subexpression contains those of its parts."""

    def fresh(self) -> Type:
        """Return a new type variable."""
        self.variables += 1
        return Type("parameter", f"_var{self.variables}")

    def assignable(self, lhs: Type, rhs: Type) -> bool:
        """Tell whether the types are compatible. If so, their type variables are bound accordingly."""
        return self.all_assignable((lhs,), (rhs,))

    def all_assignable(self, lhs: tuple[Type, ...], rhs: tuple[Type, ...]) -> bool:
        """Tell whether the types are compatible pair by pair."""
        self._journal.clear()
        if self._all(lhs, rhs):
            return True
        # In reverse, so that a variable bound twice gets its first binding back.
        for variable, previous in reversed(self._journal):
            if previous is None:
                del self._bound[variable]
            else:
                self._bound[variable] = previous
        self._resolved.clear()
        return False

    def resolve(self, target: Type, *, unbound: Type | None = None) -> Type:
        """Return the type with its variables replaced. Unbound variables are replaced by `unbound`, if given."""
        if target.kind != "parameter" and not target.parameters:
            return target
        key = id(target), unbound
        if key not in self._resolved:
            # With the type itself, so that its identity cannot become that of another.
            self._resolved[key] = target, self._resolve(target, unbound)
        return self._resolved[key][1]

    def _resolve(self, target: Type, unbound: Type | None) -> Type:
        if target.kind == "parameter":
            binding = self._bound.get(target)
            if binding is not None:
                return self.resolve(binding, unbound=unbound)
            return target if unbound is None else unbound
        return target._replace(parameters=tuple(self.resolve(part, unbound=unbound) for part in target.parameters))

    def instantiate(self, types: tuple[Type, ...]) -> tuple[Type, ...]:
        """Return the types of a signature with fresh type variables."""
        if all(map(is_plain, types)):
            return types
        names: dict[Type, Type] = {}
        return tuple(self._rename(part, names) for part in types)

    def _rename(self, target: Type, names: dict[Type, Type]) -> Type:
        if target.kind == "parameter":
            if target not in names:
                names[target] = self.fresh()
            return names[target]
        if not target.parameters:
            return target
        return target._replace(parameters=tuple(self._rename(part, names) for part in target.parameters))

    def _all(self, lhs: tuple[Type, ...], rhs: tuple[Type, ...]) -> bool:
        return len(lhs) == len(rhs) and all(self._assignable(a, b) for a, b in zip(lhs, rhs, strict=True))

    def _assignable(self, lhs: Type, rhs: Type) -> bool:
        if rhs.kind == "parameter":
            valid, had_one = self._substitutes(lhs, rhs)
            # If it was bound to something incompatible, the other side is not tried.
            if valid or had_one:
                return valid
        if lhs.kind == "parameter":
            return self._substitutes(rhs, lhs)[0]
        if lhs.kind in _TOP or rhs.kind in _TOP:
            return True
        if lhs.kind == "null" or rhs.kind == "null":
            non_null = rhs if lhs.kind == "null" else lhs
            return non_null.kind in _NULLABLE or non_null.kind == "null"
        if lhs.kind == "type":
            return rhs.kind == "type"
        if lhs.kind in _PARAMETRIC:
            return lhs[:2] == rhs[:2] and self._all(lhs.parameters, rhs.parameters)
        return lhs == rhs

    def _substitutes(self, candidate: Type, variable: Type) -> tuple[bool, bool]:
        """Tell whether the variable can be bound to the candidate, and whether it was bound before."""
        if candidate == variable:
            return True, True
        binding = self._bound.get(variable)
        if binding is None:
            # A variable within its own binding would make the type infinite.
            if not self._free_of(variable, candidate):
                return False, False
            self._bind(variable, candidate)
            return True, False
        if candidate == binding:
            return True, True
        if not self._assignable(candidate, binding):
            return False, True
        general = most_general(candidate, binding)
        if self._free_of(variable, general):
            self._bind(variable, general)
        return True, True

    def _bind(self, variable: Type, target: Type) -> None:
        self._journal.append((variable, self._bound.get(variable)))
        self._bound[variable] = target
        self._resolved.clear()

    def _free_of(self, variable: Type, target: Type) -> bool:
        """Tell whether the variable does not occur in the type."""
        if variable == target:
            return False
        if target.kind == "parameter":
            binding = self._bound.get(target)
            return binding is None or self._free_of(variable, binding)
        return all(self._free_of(variable, part) for part in target.parameters)


def most_general(lhs: Type, rhs: Type) -> Type:
    """Return the more general of two compatible types."""
    return lhs if _less_specific(lhs, rhs) else rhs


def _less_specific(lhs: Type, rhs: Type) -> bool:
    if is_dynamic(lhs) or lhs.kind == "parameter":
        return True
    if is_dynamic(rhs) or rhs.kind == "parameter" or lhs.kind != rhs.kind:
        return False
    if lhs.kind == "type":
        return True
    if lhs.kind in _PARAMETRIC:
        return (
            lhs.name == rhs.name
            and len(lhs.parameters) == len(rhs.parameters)
            and all(_less_specific(a, b) for a, b in zip(lhs.parameters, rhs.parameters, strict=True))
        )
    return lhs == rhs


def unwrap(candidate: Type) -> tuple[Type, bool]:
    """Return the value type of an optional type, and whether the type is optional."""
    return (candidate.parameters[0], True) if is_optional(candidate) else (candidate, False)
