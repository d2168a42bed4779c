"""gunicorn starts the informers in each worker, after the fork; with and without ``--preload``."""

from typing import Any


def post_worker_init(worker: Any) -> None:
    from examples.blocking.flask_app import factory

    factory.start()


def worker_exit(server: Any, worker: Any) -> None:
    from examples.blocking.flask_app import factory

    factory.shutdown()
