"""What roles grant, and what podium says it needs, in the same terms."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from podium.cli.options.configuration import Usable
from podium.client.credentials import load
from podium.client.permissions import Needs, Permission
from podium.client.session import ApiSession
from podium.daemon.permissions import needs
from podium.lib.clock import ManualClock


def grants(objects: Iterable[Mapping[str, Any]]) -> Iterator[Permission]:
    """Everything that the roles among these objects grant on resources."""
    for item in objects:
        if item["kind"] not in ("ClusterRole", "Role"):
            continue
        namespace = item["metadata"].get("namespace", "")
        for rule in item["rules"]:
            for group in rule["apiGroups"]:
                for resource in rule["resources"]:
                    for verb in rule["verbs"]:
                        for name in rule.get("resourceNames", [""]):
                            yield Permission(group, resource, verb, namespace, name)


async def needs_of(good: Usable, **fields: Any) -> Needs:
    """What podium needs with that configuration."""
    clock = ManualClock()
    async with ApiSession(await load(None, clock, master="http://127.0.0.1:1")) as session:
        return needs(good.config, good.plugins, session, clock, **fields)
