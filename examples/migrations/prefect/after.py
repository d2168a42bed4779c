"""Prefect's worker with informers."""

import asyncio

from informer_observer import use_informers
from observing import main

use_informers()
asyncio.run(main())
