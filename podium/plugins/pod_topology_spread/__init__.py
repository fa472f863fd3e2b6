"""PodTopologySpread: the plugin, a pod's constraints, and the counts of matching pods by topology value."""

from podium.plugins.pod_topology_spread.plugin import PodTopologySpread

__all__ = ["PodTopologySpread"]
