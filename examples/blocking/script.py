"""A script: print every change of ConfigMaps until Ctrl-C, and count them in a handler. It needs a kubeconfig."""

from aioinformer import KubeObject
from aioinformer.blocking import Events, Factory, Informer, Registration


class Counter:
    """Counts the ConfigMaps of each namespace, in a thread of its own."""

    def __init__(self, maps: Informer[KubeObject]) -> None:
        self.counts: dict[str, int] = {}
        self.registration: Registration = maps.add_event_handler(on_add=self._add)

    def _add(self, obj: KubeObject, is_in_initial_list: bool) -> None:
        self.counts[obj.namespace] = self.counts.get(obj.namespace, 0) + 1


def follow(events: Events[KubeObject]) -> None:
    for event in events:
        print(event.type, event.object.key)


def main() -> None:
    with Factory() as factory:
        maps = factory.for_resource("v1", "configmaps")
        counter = Counter(maps)
        counter.registration.wait_synced(30)
        print(counter.counts)
        with maps.events() as events:
            follow(events)


if __name__ == "__main__":
    main()
