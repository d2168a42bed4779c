"""The harness runs every client in turn on the same bytes. See CONTRACT.md and matrix.toml."""
