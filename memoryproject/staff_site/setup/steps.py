"""The steps of the set-up, and which of them are done."""

from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.http import HttpRequest
from django.utils.translation import gettext as _

from memories_app.models import Memory
from memoryproject.foundation.integrations.whatsapp.registry import provider_states
from memoryproject.foundation.tables import read_table
from memoryproject.staff_site.operations import provider_test, settings_in_force
from sessions_app.conversations.history_queries import profile_current
from sessions_app.stored_settings import is_set_elsewhere

_WORDS = read_table(__file__, "words.yaml")
TITLES, LABELS = _WORDS["titles"], _WORDS["labels"]
NAMES = tuple(TITLES)


@dataclass(frozen=True)
class Step:
    """A step as the pages show it. ``how``: for a done one, where that comes from."""

    name: str
    title: str
    done: bool
    how: str = ""


def is_open(request: HttpRequest) -> bool:
    """Return whether this person is led to the set-up.

    Not where the owner is named in .env: such an installation was set up by hand.
    """
    return (
        bool(settings.SHOW_SETUP)
        and not is_set_elsewhere("GODFATHER_PHONE")
        and request.user.has_perm(provider_test.RIGHT)
    )


def steps() -> list[Step]:
    """Return all steps in their order."""
    profile = profile_current()
    connected = [each for each in provider_states() if each.configured and not each.demo]
    done: dict[str, Any] = {
        "owner": settings.GODFATHER_PHONE and settings_in_force.origin_shown("GODFATHER_PHONE"),
        "business": profile.business_name or profile.business_facts,
        "model": settings.CHAT_MODEL == "openai" and settings_in_force.origin_shown("CHAT_MODEL"),
        "whatsapp": connected and ", ".join(each.title for each in connected),
        "facts": Memory.objects.exists() and _("there are memories"),
        "colleague": User.objects.filter(is_staff=True)[1:2].exists() and _("there are several"),
    }
    return [
        Step(name, str(title), bool(done.get(name)), str(done.get(name) or ""))
        for name, title in TITLES.items()
    ]


def first_open() -> str:
    """Return the name of the first step that isn't done."""
    return next(step.name for step in steps() if not step.done)


def after(name: str) -> str:
    """Return the name of the step after this one."""
    return NAMES[min(NAMES.index(name) + 1, len(NAMES) - 1)]
