from asyncio import Future
from typing import Any

class CancellationToken:
    def link_future(self, future: Future[Any]) -> Future[Any]: ...
