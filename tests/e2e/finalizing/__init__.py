"""Deletion and who has a say in it: what a cluster's controllers do, the real ones and the embedded ones alike."""
