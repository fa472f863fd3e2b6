"""Rules by which pods and nodes match, for many rows at once: node selectors, taints, cordons, zones of volumes."""
