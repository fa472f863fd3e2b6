"""Composes Events about pods and writes them to the API server."""
