"""A Flask application that answers from the cache. It needs Flask, and a kubeconfig.

python -m examples.blocking.flask_app
gunicorn --config examples/blocking/gunicorn_conf.py examples.blocking.flask_app:app
uwsgi --ini examples/blocking/uwsgi.ini
"""

from flask import Flask

from aioinformer import blocking

factory = blocking.Factory()  # starts no thread yet: the process may fork
maps = factory.for_resource("v1", "configmaps")
app = Flask(__name__)


@app.get("/configmaps")
def list_configmaps() -> list[str]:
    return sorted(config_map.key for config_map in maps.lister.list())


@app.get("/readyz")
def readyz() -> tuple[str, int]:
    ready = factory.ready()
    return str(ready), 200 if ready else 503


@app.get("/metrics")
def metrics() -> tuple[str, int, dict[str, str]]:
    return factory.metrics(), 200, {"Content-Type": "text/plain; version=0.0.4"}


if __name__ == "__main__":
    with factory:
        app.run()
