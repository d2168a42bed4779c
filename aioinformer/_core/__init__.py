"""Cooperative scheduling and cancellation: private to the package."""
