from __future__ import annotations

from podium.objects.core import Pod
from tests.builders import pod


def pod_at(name: str, version: int, uid: str = "u") -> Pod:
    """A pod as it was at a resource version."""
    return pod(name, namespace="ns", uid=uid, metadata={"resourceVersion": str(version)})
