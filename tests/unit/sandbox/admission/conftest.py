"""A store, and pods with amounts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from podium.sandbox.errors import ApiError
from podium.sandbox.store import Store

Json = dict[str, Any]


@pytest.fixture
def store() -> Store:
    return Store()


@pytest.fixture
def pod() -> Callable[..., Json]:
    """A manifest of a pod with one container that has these resources."""

    def make(resources: Json | None = None, *, labels: Json | None = None, **spec: Any) -> Json:
        container = {"name": "main", "image": "web:1", "resources": resources or {}}
        metadata = {"name": "web", "labels": labels or {}}
        return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [container]} | spec}

    return make


@pytest.fixture
def refusal(store: Store) -> Callable[[Json], str]:
    """Return the store's objection to an object."""

    def ask(obj: Json) -> str:
        with pytest.raises(ApiError) as caught:
            store.create(obj)
        return caught.value.message

    return ask
