"""The control plane that every cluster has: garbage collection, namespaces, definitions, protection."""
