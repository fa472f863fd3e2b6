"""Small components that could be packages of their own: clock, heap, state tables. They know nothing of Kubernetes."""
