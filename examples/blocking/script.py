"""A script: print every change of ConfigMaps until Ctrl-C. It needs a kubeconfig."""

import sys

from aioinformer import blocking


def main(seconds: float | None = None) -> None:
    with blocking.Factory() as factory:
        maps = factory.for_resource("v1", "configmaps")
        maps.wait_synced(30)
        print(f"{len(maps.lister.list())} ConfigMaps")
        for event in maps.events(timeout=seconds):
            print(event.type, event.object.key)


if __name__ == "__main__":
    main(float(sys.argv[1]) if len(sys.argv) > 1 else None)
