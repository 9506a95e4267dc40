"""A world whose files come from the stand-in of Meta's server over HTTP.

They are kept in a folder, and then the same in a bucket.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
from django_q.models import OrmQ

from memoryproject.foundation.integrations.media_storage.base import MediaStorage
from memoryproject.foundation.integrations.whatsapp.cloud.client import CloudProvider
from memoryproject.foundation.integrations.whatsapp.events import Media
from sessions_app.media.dependencies import build_media_dependencies, media_request
from sessions_app.media.fetch import MediaDependencies, media_fetch
from sessions_app.models import MediaFile
from sessions_app.tasks import remove_media
from tests.loopback.graph import GraphServer
from tests.loopback.s3_server import S3Server
from tests.world import CLIENT, World

PREFIX = "whatsapp/files/"
PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 4


@dataclass
class Files:
    """Sends files as a person would, and fetches them as a worker would."""

    world: World
    graph: GraphServer
    dependencies: MediaDependencies
    folder: Path
    bucket: S3Server | None

    @property
    def storage(self) -> MediaStorage:
        return self.dependencies.storage

    def kept(self) -> dict[str, bytes]:
        """What lies in the storage, and what is on its way into it."""
        incoming = self.storage.incoming.glob("*")
        found = {path.name: path.read_bytes() for path in incoming if path.is_file()}
        objects = self.bucket.objects if self.bucket else {}
        return {**found, **{key.removeprefix(PREFIX): each for key, each in objects.items()}}

    def lay(self, name: str, content: bytes = b"x") -> None:
        """Put something there past the product."""
        if self.bucket:
            self.bucket.add(PREFIX + name, content)
        else:
            (self.folder / name).write_bytes(content)

    def remove_queued(self) -> None:
        """What a worker does with the removals that wait for one: those from a bucket."""
        for job in OrmQ.objects.all():
            if job.func() == "sessions_app.tasks.remove_media":
                remove_media()
                job.delete()

    def age(self, name: str) -> None:
        """Have a file seem to be years old."""
        if self.bucket and PREFIX + name in self.bucket.objects:
            self.bucket.age(PREFIX + name, datetime(2001, 1, 1, tzinfo=timezone.utc))
        else:
            os.utime(self.storage.incoming / name, (1, 1))

    def send(self, content: bytes = PNG, kind: str = "image", **media: Any) -> MediaFile:
        media_id = self.graph.add_file(content, "image/png")
        self.world.say(CLIENT, "", kind=kind, media=Media(media_id=media_id, **media))
        return MediaFile.objects.latest("created_at")

    def fetch(self, row: MediaFile, **changes: Any) -> MediaFile:
        media_fetch(media_id=row.pk, dependencies=replace(self.dependencies, **changes))
        row.refresh_from_db()
        return row


@pytest.fixture
def bucket(settings: Any) -> Iterator[S3Server]:
    """A bucket that the settings name; its server is there until the end of the test."""
    with S3Server(page=3) as server:
        settings.MEDIA_STORAGE = f"s3://{server.bucket}/{PREFIX.rstrip('/')}"
        settings.MEDIA_S3_ENDPOINT_URL = server.url
        settings.MEDIA_S3_REGION = server.region
        settings.MEDIA_S3_ACCESS_KEY_ID = server.key_id
        settings.MEDIA_S3_SECRET_ACCESS_KEY = server.secret
        yield server


@pytest.fixture(params=["folder", "bucket"])
def files(
    request: pytest.FixtureRequest, world: World, settings: Any, tmp_path: Path
) -> Iterator[Files]:
    settings.DATA_DIR = tmp_path
    server = request.getfixturevalue("bucket") if request.param == "bucket" else None
    yield from kept_files(world, tmp_path, server)


@pytest.fixture
def in_bucket(world: World, settings: Any, tmp_path: Path, bucket: S3Server) -> Iterator[Files]:
    settings.DATA_DIR = tmp_path
    yield from kept_files(world, tmp_path, bucket)


@pytest.fixture
def server(in_bucket: Files) -> S3Server:
    assert in_bucket.bucket is not None
    return in_bucket.bucket


def kept_files(world: World, data: Path, bucket: S3Server | None) -> Iterator[Files]:
    world.with_rules(fetch_media=media_request)
    with GraphServer(access_token="secret-token") as graph:
        provider = CloudProvider(
            api_url=f"{graph.url}/v24.0",
            phone_number_id=graph.phone_number_id,
            access_token="secret-token",
            timeout=5.0,
        )
        dependencies = replace(
            build_media_dependencies(),
            providers=dict.fromkeys(("cloud", "green", "console"), provider),
            max_bytes=100_000,
        )
        world.use(media=dependencies.storage)
        yield Files(world, graph, dependencies, data / "media", bucket)
