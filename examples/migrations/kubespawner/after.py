"""KubeSpawner with informers."""

import asyncio

from informer_reflector import use_informers
from spawning import main

use_informers()
asyncio.run(main())
