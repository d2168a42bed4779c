"""The HTTP API: connections, requests and answers, encodings, and the paths that are not about objects."""
