"""Deletion with the real and the embedded controllers."""
