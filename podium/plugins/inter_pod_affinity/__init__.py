"""InterPodAffinity: the plugin, and the counts of matching pods by topology value."""

from podium.plugins.inter_pod_affinity.plugin import InterPodAffinity

__all__ = ["InterPodAffinity"]
