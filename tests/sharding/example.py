"""The example of a sharded operator on a real kube-apiserver that selects shards: one of four replicas is killed every
ten seconds.

python -m tests.sharding.example --kills 12
"""

from __future__ import annotations

import argparse
import asyncio

from examples import sharded_operator
from tests.kubernetes.controlplane import ControlPlane


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=12)
    parser.add_argument("--seconds", type=float, default=10.0, help="between two kills")
    given = parser.parse_args()
    with ControlPlane(feature_gates={"ShardedListAndWatch": True}) as running:
        asyncio.run(sharded_operator.main(str(running.kubeconfig), given.kills, given.seconds))


if __name__ == "__main__":
    main()
