"""A world whose files come from the stand-in of Meta's server over HTTP."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from memoryproject.foundation.integrations.loopback.graph import GraphServer
from memoryproject.foundation.integrations.whatsapp.cloud.client import CloudProvider
from memoryproject.foundation.integrations.whatsapp.events import Media
from sessions_app.media.dependencies import media_request
from sessions_app.media.facade import MediaDependencies, media_fetch
from sessions_app.models import MediaFile
from tests.world import CLIENT, World

PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 4


@dataclass
class Files:
    """Sends files as a person would, and fetches them as a worker would."""

    world: World
    graph: GraphServer
    dependencies: MediaDependencies

    @property
    def folder(self) -> Path:
        return self.dependencies.folder

    def send(self, content: bytes = PNG, kind: str = "image", **media: Any) -> MediaFile:
        media_id = self.graph.add_file(content, "image/png")
        self.world.say(CLIENT, "", kind=kind, media=Media(media_id=media_id, **media))
        return MediaFile.objects.latest("created_at")

    def fetch(self, row: MediaFile, **changes: Any) -> MediaFile:
        media_fetch(media_id=row.pk, dependencies=replace(self.dependencies, **changes))
        row.refresh_from_db()
        return row


@pytest.fixture
def files(world: World, settings: Any, tmp_path: Path) -> Iterator[Files]:
    settings.DATA_DIR = tmp_path
    world.with_rules(fetch_media=media_request)
    with GraphServer(access_token="secret-token") as graph:
        provider = CloudProvider(
            api_url=f"{graph.url}/v24.0",
            phone_number_id=graph.phone_number_id,
            access_token="secret-token",
            timeout=5.0,
        )
        names = ("cloud", "green", "console")
        dependencies = MediaDependencies(
            providers=dict.fromkeys(names, provider), folder=tmp_path / "media", max_bytes=100_000
        )
        yield Files(world, graph, dependencies)
