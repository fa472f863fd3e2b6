"""Events about pods: their texts, and their way to the API server."""
