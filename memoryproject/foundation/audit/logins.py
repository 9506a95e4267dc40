"""Record logins to the admin, and failed ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.contrib.auth.signals import user_logged_in, user_login_failed

from memoryproject.foundation.audit.audit_events import Actor, audit_record
from memoryproject.foundation.audit.audit_logfile import sign
from memoryproject.foundation.audit.wiring import audit_key


def connect() -> None:
    user_logged_in.connect(_succeeded, dispatch_uid="audit_login")
    user_login_failed.connect(_failed, dispatch_uid="audit_login_failed")


def typed_name_mark(key: str, name: str) -> str:
    """Return the keyed mark that is stored instead of a name typed at a login.

    People type passwords there. The same name has the same mark.
    """
    return sign(key, "typed name", name)


def _succeeded(user: Any, **_: Any) -> None:
    actor = Actor("staff", user.get_username())
    audit_record(action="login.success", actor=actor, object_type="user", object_id=user.pk)


def _failed(credentials: Mapping[str, Any], **_: Any) -> None:
    mark = typed_name_mark(audit_key(), str(credentials.get("username", "")))
    # "code": the password was right. "password": typed by somebody who is logged in.
    details = {"step": credentials["step"]} if "step" in credentials else {}
    audit_record(
        action="login.failed",
        actor=Actor("staff"),
        object_type="typed name",
        object_id=mark,
        details=details,
    )
