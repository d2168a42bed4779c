"""Prefect's worker with its own observer."""

import asyncio

from observing import main

asyncio.run(main())
