"""What tests share: rules and tools with fakes, and messages as the providers tell of them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.test import override_settings
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers
from hypothesis.internal.constants_ast import Constants

from memoryproject.foundation.integrations.llm.scripted import ScriptedChatModel
from sessions_app.history.chat_memory import ChatMemoryService
from sessions_app.inbound.take_message import IntakeRules
from sessions_app.turns.turn_dependencies import Dependencies
from tests.database import django_db_modify_db_settings, django_db_setup
from tests.doubles.recording_provider import RecordingProvider
from tests.fuzz.damage import FACTOR
from tests.once import module_rows
from tests.world import World, new_chat_memory, new_chat_model, new_dependencies, new_rules

# Fixtures that stand elsewhere.
__all__ = ["django_db_modify_db_settings", "django_db_setup", "module_rows"]

# A machine that does something else at the same time is no fault of what is tested. Each run tries
# the same examples, so that no run fails by chance; `make fuzz` tries others, and many more.
settings.register_profile(
    "busy",
    settings.default,
    max_examples=25 * FACTOR,
    derandomize=FACTOR == 1,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("busy")
if FACTOR == 1:
    # It reads the numbers and words of all modules that are loaded, for seconds, and its examples
    # would depend on which these are: on the order of the tests.
    providers.__dict__["_get_local_constants"] = Constants


@pytest.fixture(scope="session", autouse=True)
def quick_logins_and_clients() -> Iterator[None]:
    """A safe hash takes a third of a second, each new client looks for all static files, the
    default embedder needs 50 ms for a text, and a look for stored settings is a statement more."""
    with override_settings(
        PASSWORD_HASHERS=["django.contrib.auth.hashers.MD5PasswordHasher"],
        WHITENOISE_AUTOREFRESH=True,
        EMBEDDER="wordllama",
        # Tests of stored settings and of the set-up switch them on.
        STORED_SETTINGS_SECONDS=None,
        SHOW_SETUP=False,
    ):
        yield


@pytest.fixture
def chat_memory() -> ChatMemoryService:
    """One godfather, and no strategy: see summarizing() in tests/world.py for one."""
    return new_chat_memory()


@pytest.fixture
def rules(chat_memory: ChatMemoryService) -> IntakeRules:
    """Memory on, one godfather."""
    return new_rules(chat_memory)


@pytest.fixture
def provider() -> RecordingProvider:
    """Stands for the Cloud API; keeps what was sent."""
    return RecordingProvider(name="cloud")


@pytest.fixture
def chat_model() -> ScriptedChatModel:
    """Answers every message with "answer to: …" and keeps the prompts."""
    return new_chat_model()


@pytest.fixture
def dependencies(
    provider: RecordingProvider, chat_model: ScriptedChatModel, chat_memory: ChatMemoryService
) -> Dependencies:
    return new_dependencies(provider=provider, chat_model=chat_model, chat_memory=chat_memory)


@pytest.fixture
def world(db: None, rules: IntakeRules, dependencies: Dependencies) -> World:
    """A memory server without web server and workers: messages go in, answers come out."""
    return World(rules=rules, dependencies=dependencies)
