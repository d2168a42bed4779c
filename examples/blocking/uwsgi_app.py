"""uWSGI starts the informers in each worker, after the fork. Threads need ``enable-threads``."""

import uwsgi
from uwsgidecorators import postfork

from examples.blocking.flask_app import app, factory

application = app

if uwsgi.worker_id():  # with lazy-apps the worker loads the application itself
    factory.start()
else:
    postfork(factory.start)
