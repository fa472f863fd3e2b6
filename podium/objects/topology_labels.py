"""The labels of nodes and volumes that name their zone and region: today's, and those before them.

Source: k8s.io/api/core/v1 well_known_labels.go, v0.36.2.
"""

from __future__ import annotations

from typing import Final

ZONE: Final = "topology.kubernetes.io/zone"
REGION: Final = "topology.kubernetes.io/region"
BETA_ZONE: Final = "failure-domain.beta.kubernetes.io/zone"
BETA_REGION: Final = "failure-domain.beta.kubernetes.io/region"
