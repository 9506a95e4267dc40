"""Functions of forgetting for pages and REST resources of other packages."""

from collections.abc import Callable, Mapping

from rest_framework.exceptions import APIException

from memoryproject.foundation.rest_kit.errors import not_found
from sessions_app.forgetting.api import forget_once, forgets, memories_forget_once
from sessions_app.forgetting.choose_pages import ForgetAction
from sessions_app.forgetting.deletion_plan import NothingToForgetError

# The errors of forgetting as responses of the API.
FORGETTING: Mapping[type[Exception], Callable[[Exception], APIException]] = {
    NothingToForgetError: not_found
}
