"""What the provisioner says it needs, against the roles that are shipped."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from podium.client.permissions import Permission
from podium.provisioner.controller.app import NAME, ProviderName
from podium.provisioner.controller.permissions import needs
from podium.provisioner.state.manifests import NODE_CLAIMS
from tests.rights import grants

DEPLOY = Path(__file__).parents[4] / "deploy" / "provisioner"


def shipped_permissions(folder: str = ".") -> Iterator[Permission]:
    return grants(yaml.safe_load_all((DEPLOY / folder / "rbac.yaml").read_text()))


def test_to_plan_only_the_shipped_role_is_exactly_what_is_needed() -> None:
    assert sorted(shipped_permissions()) == list(needs("plan-only").permissions)


@pytest.mark.parametrize("provider", ["sandbox", "karpenter"])
def test_a_provider_that_acts_needs_exactly_one_more_role(provider: ProviderName) -> None:
    assert sorted([*shipped_permissions(), *shipped_permissions(provider)]) == list(needs(provider).permissions)


def test_podiums_rules_need_exactly_one_more_role() -> None:
    answer = needs("plan-only", places_with_podium=True)
    assert sorted([*shipped_permissions(), *shipped_permissions("rules-podium")]) == list(answer.permissions)


def test_each_need_names_who_has_it() -> None:
    permissions = needs("sandbox", places_with_podium=True, namespace="nodes").permissions
    assert permissions[Permission("", "nodes", "delete")] == ("--provider sandbox",)
    assert permissions[Permission("storage.k8s.io", "csidrivers", "list")] == ("--rules podium",)
    assert permissions[Permission("", "configmaps", "patch", "nodes", NAME)] == ("the status",)
    assert permissions[Permission("coordination.k8s.io", "leases", "create", "nodes")] == ("leader election",)


def test_without_leader_election_there_is_no_lease() -> None:
    assert not any(permission.resource == "leases" for permission in needs("plan-only", leader_elect=False).permissions)


def test_only_karpenter_needs_its_resources_to_be_there() -> None:
    assert needs("karpenter").required == {NODE_CLAIMS}
    assert needs("sandbox").required == frozenset()
