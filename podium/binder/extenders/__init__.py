"""HTTP extenders: the requests, their JSON, TLS, and their concurrency limit."""
