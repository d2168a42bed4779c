"""`python -m tests.kubernetes` builds the servers for the tests, and prints their folder."""

from tests.kubernetes.binaries import ensure_binaries

if __name__ == "__main__":
    print(ensure_binaries())  # noqa: T201
