"""The builders that podium gives to its users, for its own tests too."""

from podium.testing.builders import REGION_LABEL, ZONE_LABEL, node, pod

__all__ = ["REGION_LABEL", "ZONE_LABEL", "node", "pod"]
