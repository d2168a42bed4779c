"""The latency of a web service while it reads a cluster: see ``__main__``."""
