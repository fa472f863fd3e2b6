"""What `podium outlook` says of a cluster, held against what podium then does there."""
