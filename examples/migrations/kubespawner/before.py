"""KubeSpawner with its own reflector."""

import asyncio

from spawning import main

asyncio.run(main())
