"""Kubernetes informers for asyncio."""
