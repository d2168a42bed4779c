"""promtool, the checker of Prometheus' rules, built from its Go module, for tests of alerts."""
