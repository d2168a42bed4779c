"""A Django project in one file, which answers from the cache. It needs Django, and a kubeconfig.

    python -m examples.blocking.django_app runserver --noreload
    gunicorn examples.blocking.django_app:application          # without --preload: see docs/blocking.md

In a project of several files, ``Informers`` stands in apps.py, and INSTALLED_APPS names it.
"""

import sys
from pathlib import Path

from django.apps import AppConfig
from django.conf import settings
from django.core.management import execute_from_command_line
from django.core.wsgi import get_wsgi_application
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.urls import path

from aioinformer import blocking

factory = blocking.Factory()
maps = factory.for_resource("v1", "configmaps")


class Informers(AppConfig):
    name = "examples.blocking"
    path = str(Path(__file__).parent)

    def ready(self) -> None:
        factory.start()


def list_configmaps(request: HttpRequest) -> JsonResponse:
    return JsonResponse(sorted(config_map.key for config_map in maps.lister.list()), safe=False)


def readyz(request: HttpRequest) -> HttpResponse:
    ready = factory.ready()
    return HttpResponse(str(ready), status=200 if ready else 503)


urlpatterns = [path("configmaps", list_configmaps), path("readyz", readyz)]

settings.configure(
    ROOT_URLCONF=__name__,
    ALLOWED_HOSTS=["*"],
    SECRET_KEY="for this example only",
    INSTALLED_APPS=[f"{__name__}.Informers"],
)

if __name__ == "__main__":
    execute_from_command_line(sys.argv)
else:
    application = get_wsgi_application()
