"""Small components that could be packages of their own: clock, heap, state tables. None imports Kubernetes types."""
