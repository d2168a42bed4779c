"""Celery tasks that answer from the cache of their worker process. It needs Celery, and a kubeconfig.

celery --app examples.blocking.celery_app worker
"""

from celery import Celery, signals

from aioinformer import blocking

app = Celery("configmaps", broker="amqp://", backend="rpc://")

factory = blocking.Factory()
maps = factory.for_resource("v1", "configmaps")


@signals.worker_process_init.connect
def start(**_: object) -> None:
    factory.start()


@signals.worker_process_shutdown.connect
def shutdown(**_: object) -> None:
    factory.shutdown()


@app.task
def list_configmaps() -> list[str]:
    maps.wait_synced(30)
    return sorted(config_map.key for config_map in maps.lister.list())
