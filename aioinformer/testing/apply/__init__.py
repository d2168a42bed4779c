"""Patches, server-side apply and the owners of fields."""
