from pathlib import Path

import yaml

from podium.config import default_configuration
from podium.lib.clock import ManualClock
from podium.plugins import IN_TREE
from podium.recording.shadow.shadow import Shadow
from tests.rights import granted

ROLES = Path(__file__).parents[4] / "deploy" / "shadow" / "rbac.yaml"


def test_the_role_grants_to_read_what_the_shadow_follows_and_no_more():
    shadow = Shadow(default_configuration(), IN_TREE, ManualClock())
    read = {(each.group, each.plural, verb) for each in shadow.resources for verb in ("list", "watch")}
    allowed = list(granted(yaml.safe_load_all(ROLES.read_text())))
    assert {(each.group, each.resource, each.verb) for each in allowed} == read
