"""celery_app.py with a broker of files, to try it without a message queue.

export QUEUES=$(mktemp --directory) POOL=prefork
celery --app examples.blocking.celery_files worker --pool $POOL &
python -m examples.blocking.celery_files
"""

import json
import os
from pathlib import Path

from celery import signals

from examples.blocking.celery_app import app, list_configmaps, start

folder = Path(os.environ["QUEUES"])
for name in ("queue", "control", "results"):
    (folder / name).mkdir(exist_ok=True)
app.conf.update(
    broker_url="filesystem://",
    broker_transport_options={
        "data_folder_in": f"{folder}/queue",
        "data_folder_out": f"{folder}/queue",
        "control_folder": f"{folder}/control",
    },
    result_backend=f"file://{folder}/results",
)
if os.environ["POOL"] == "threads":  # it has one process, and sends no worker_process_init
    signals.worker_init.connect(start)

if __name__ == "__main__":
    print(json.dumps(list_configmaps.delay().get(timeout=30)))
