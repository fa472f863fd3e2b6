"""The scheduling cycle: from a pod and a snapshot to a decision."""
