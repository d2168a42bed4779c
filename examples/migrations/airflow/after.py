"""Airflow's watcher with an informer."""

from informer_watcher import InformerJobWatcher
from watching import watch

watch(InformerJobWatcher)
