"""The plugin API: extension points, statuses, cluster events, and the state of one scheduling attempt."""
