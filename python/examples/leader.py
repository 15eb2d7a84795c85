"""Who leads: leader.py SOCKET GROUP, several times. Views are the same for all, so all agree."""

import asyncio
import sys

import rota


async def main(socket: str, group: str) -> None:
    async with rota.aio.Client(socket, membership=True) as client:
        await client.join(group)
        async for event in client:
            if isinstance(event, rota.View):
                print(event.members[0], "leads", len(event.members), flush=True)


asyncio.run(main(sys.argv[1], sys.argv[2]))
