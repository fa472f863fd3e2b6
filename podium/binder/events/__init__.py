"""Events about pods: what they say, and how they get to the API server."""
