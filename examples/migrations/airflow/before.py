"""Airflow's own watcher."""

from watching import KubernetesJobWatcher, watch

watch(KubernetesJobWatcher)
