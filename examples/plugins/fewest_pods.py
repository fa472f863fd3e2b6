"""A scorer in table form: one call for all nodes. The fewer pods a node has for its size, the better."""

import numpy as np

from podium.framework import MAX_NODE_SCORE, Rows, Snapshot, TableScorePlugin


class FewestPods(TableScorePlugin):
    def score_rows(self, state, pod, snapshot: Snapshot, rows: Rows):
        allowed = np.maximum(snapshot.allowed_pods[rows], 1)
        free = np.maximum(allowed - snapshot.pod_count[rows], 0)
        return free * MAX_NODE_SCORE // allowed
