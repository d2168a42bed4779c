"""An operator for shared storage: it keeps a Cave while pods mount it. See README.md."""
