"""An operator for shared storage: a Cave does not go while pods still mount it. See README.md."""
