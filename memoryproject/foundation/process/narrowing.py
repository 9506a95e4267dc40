"""Narrow a type if other code guarantees more than the type expresses."""

from typing import TypeVar

T = TypeVar("T")


def present(value: T | None) -> T:
    """Return a value that the caller knows to be there. Raises TypeError for None."""
    if value is None:
        raise TypeError("The value is None, which the caller excludes.")
    return value


def instance(value: object, kind: type[T]) -> T:
    """Return a value that the caller knows to be of this type. Raises TypeError otherwise."""
    if not isinstance(value, kind):
        raise TypeError(f"The value is of the type {type(value).__name__}, not {kind.__name__}.")
    return value
