"""HTTP extenders: the requests, their JSON, TLS, and how many run at a time."""
