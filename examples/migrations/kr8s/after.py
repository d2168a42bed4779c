"""The same script on an informer, which is that of kubernetes_asyncio's users, too."""

import asyncio

from examples.migrations.kubernetes_asyncio.after import main

asyncio.run(main())
