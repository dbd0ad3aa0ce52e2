"""What a server does by itself."""

import asyncio
from pathlib import Path

from headway.core.commands import Configure, Enqueue, Lease, Nack
from headway.core.config import QueueConfig
from headway.core.spec import JobSpec
from headway.runtime.door import Door
from headway.runtime.views import Count
from headway.server.desk import Desk
from headway.server.housekeeping import discard_old
from headway.server.tokens import wall_ms


def test_dead_letters_are_discarded_when_they_are_old(tmp_path: Path) -> None:
    async def story() -> None:
        door = Door(tmp_path / "jobs.db")
        desk = Desk(door, asyncio.get_running_loop())
        for name in ("mail", "none"):
            door.submit(Configure(QueueConfig(name=name))).result()
        door.submit(Enqueue("mail", [JobSpec()] * 3)).result()
        for job in door.submit(Lease(max=3)).result().jobs:
            door.submit(Nack(job.token, "broken", is_bury=True)).result()
        assert await discard_old(desk, wall_ms() - 60_000) == 0
        assert door.submit(Count("mail")).result().dead == 3
        assert await discard_old(desk, wall_ms() + 60_000) == 1
        while door.submit(Count("mail")).result().dead:
            await asyncio.sleep(0)
        door.close()

    asyncio.run(story())
