from __future__ import annotations

from pathlib import Path

import yaml

from podium.client.permissions import Permission
from podium.config import default_configuration
from podium.lib.clock import ManualClock
from podium.plugins import IN_TREE
from podium.recording.shadow.permissions import needs
from podium.recording.shadow.shadow import Shadow
from tests.rights import grants

ROLES = Path(__file__).parents[4] / "deploy" / "shadow" / "rbac.yaml"
NEEDED = needs(default_configuration(), IN_TREE)


def test_the_role_grants_exactly_what_is_needed() -> None:
    assert sorted(grants(yaml.safe_load_all(ROLES.read_text()))) == list(NEEDED.permissions)


def test_what_is_needed_is_to_read_what_the_shadow_follows() -> None:
    assert set(NEEDED.resources) == set(Shadow(default_configuration(), IN_TREE, ManualClock()).resources)
    assert {permission.verb for permission in NEEDED.permissions} == {"list", "watch"}
    assert Permission("storage.k8s.io", "csidrivers", "watch") in NEEDED.permissions
