"""NodeResourceTopologyMatch: pods are placed where their resources fit into single NUMA nodes."""
