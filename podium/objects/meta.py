"""The parts that all Kubernetes objects share: metadata, owners, label selectors, API integers and quantities."""

from __future__ import annotations

from typing import Annotated, TypeAlias

import msgspec
from msgspec import Struct

Int32: TypeAlias = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]
Int64: TypeAlias = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
"""The API's integer type."""
RawQuantity: TypeAlias = str | int | float
"""A quantity as it is on the wire; `objects.quantity` parses it."""
ResourceList: TypeAlias = dict[str, RawQuantity]


class Value(Struct, frozen=True, gc=False, kw_only=True, omit_defaults=True, rename="camel"):
    """Base of every part of an object: immutable, camelCase on the wire, without reference cycles."""


class OwnerReference(Value, frozen=True):
    """The object that made this one."""

    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool = False


class ObjectMeta(Value, frozen=True):
    """The metadata of every object."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: Int64 = 0
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    owner_references: tuple[OwnerReference, ...] = ()
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None

    @property
    def controller(self) -> OwnerReference | None:
        """The object that manages this one."""
        return next((reference for reference in self.owner_references if reference.controller), None)


class NamespacedObject(Value, frozen=True, tag_field="kind", tag=True):
    """An object with a namespace. If there is a `kind` on the wire, it must be the class's name."""

    metadata: ObjectMeta = ObjectMeta()

    @property
    def key(self) -> str:
        """`<namespace>/<name>`."""
        return f"{self.metadata.namespace}/{self.metadata.name}"


class ClusterObject(Value, frozen=True, tag_field="kind", tag=True):
    """An object of the whole cluster; its `kind` is checked as in `NamespacedObject`."""

    metadata: ObjectMeta = ObjectMeta()

    @property
    def key(self) -> str:
        """The name."""
        return self.metadata.name


class LabelSelectorRequirement(Value, frozen=True):
    """One `matchExpressions` entry of a label selector."""

    key: str
    operator: str
    values: tuple[str, ...] = ()


class LabelSelector(Value, frozen=True):
    """Selects objects by label; every part must match. An empty one matches everything, an absent one nothing."""

    match_labels: dict[str, str] = {}
    match_expressions: tuple[LabelSelectorRequirement, ...] = ()
