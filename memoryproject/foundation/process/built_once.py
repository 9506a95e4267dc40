"""Build what depends only on the settings once in a process."""

import functools
from collections.abc import Callable
from typing import TypeVar

from django.core.signals import setting_changed

T = TypeVar("T")


def built_once(build: Callable[[], T]) -> Callable[[], T]:
    """Decorate a function of the settings that returns something immutable.

    Where settings change, in tests or because an administrator stored some, Django's signal says
    so: then it is built again.
    """
    cached = functools.cache(build)

    def build_again(**_changed: object) -> None:
        cached.cache_clear()

    setting_changed.connect(build_again, weak=False)
    return cached
