"""HTTP calls to targets: the only package that knows the HTTP client."""
