"""Names of actions and object types for people. The log itself keeps the codes."""

from collections.abc import Mapping
from typing import Any

from memoryproject.foundation.tables import read_table

_WORDS = read_table(__file__, "words.yaml")
ACTIONS: Mapping[str, Any] = _WORDS["actions"]
ACTOR_KINDS: Mapping[str, Any] = _WORDS["actor_kinds"]
OBJECTS: Mapping[str, Any] = _WORDS["objects"]
FINDINGS: Mapping[str, Any] = _WORDS["findings"]


def action_shown(action: str) -> str:
    """Return the action in the reader's language, or its code if it has no translation.

    Actions of an older version may have none.
    """
    return str(ACTIONS.get(action, action))


def object_shown(object_type: str) -> str:
    """Return the object type in the reader's language, or its code if it has no translation."""
    return str(OBJECTS.get(object_type, object_type))
