"""The harness: every client in the same run on the same bytes, in turns. See CONTRACT.md and matrix.toml."""
