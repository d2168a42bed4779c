"""The real kube-apiserver for the tests: building, starting and calling it. See README.md."""
