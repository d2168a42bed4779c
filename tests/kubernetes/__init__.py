"""The real kube-apiserver for the tests: how it is built, started and spoken to. See README.md."""
