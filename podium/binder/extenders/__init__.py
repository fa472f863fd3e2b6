"""HTTP extenders: asking them, in which words, over which TLS, and how many at a time."""
