"""CapacityScheduling: quotas of namespaces that lend each other what they do not use."""
