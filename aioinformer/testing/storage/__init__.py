"""What the server keeps: the resources of every cluster, objects as bytes, their versions and history."""
