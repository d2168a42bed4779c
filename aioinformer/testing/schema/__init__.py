"""What objects look like: built-in kinds by the real server's own types, custom resources by their definitions."""
