"""Both providers' stand-ins, by which the answers and replies of a world go out over HTTP."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from memoryproject.foundation.integrations.whatsapp.cloud.client import CloudProvider
from memoryproject.foundation.integrations.whatsapp.green.client import GreenProvider
from tests.loopback.graph import GraphServer
from tests.loopback.green import GreenServer
from tests.world import World

INSTANCE = "1101000001"


@contextmanager
def sending_by_cloud(world: World) -> Iterator[GraphServer]:
    with GraphServer(access_token="token") as server:
        provider = CloudProvider(
            api_url=f"{server.url}/v24.0",
            phone_number_id=server.phone_number_id,
            access_token="token",
        )
        world.dependencies = replace(world.dependencies, providers={"cloud": provider})
        yield server


@contextmanager
def sending_by_green(world: World) -> Iterator[GreenServer]:
    with GreenServer(token="token", id_instance=INSTANCE) as server:
        provider = GreenProvider(api_url=server.url, id_instance=INSTANCE, token="token")
        world.dependencies = replace(world.dependencies, providers={"green": provider})
        yield server
