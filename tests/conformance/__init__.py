"""The embedded API server compared with the real kube-apiserver: ``python -m tests.conformance``.

Three parts: controller-runtime's own suites, a list of kubectl commands, and random requests.
"""
