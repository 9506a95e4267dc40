"""Functions of forgetting for pages and REST resources of other packages."""

from sessions_app.forgetting.admin.actions import ForgetAction
from sessions_app.forgetting.api.forget_call import forget_once
from sessions_app.forgetting.api.forget_refusals import FORGETTING

__all__ = [
    "FORGETTING",
    "ForgetAction",
    "forget_once",
]
