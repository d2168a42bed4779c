"""`python -m tests.kubernetes` builds what the tests run against, and says where it is."""

from tests.kubernetes.binaries import ensure_binaries

if __name__ == "__main__":
    print(ensure_binaries())  # noqa: T201
