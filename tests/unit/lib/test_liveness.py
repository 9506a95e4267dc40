"""Whether the owner of a lease still lives."""

from __future__ import annotations

import os

from memoryproject.foundation.leases import owner_is_gone, this_process
from tests.tables import table


def shifted(owner: str, seconds: float) -> str:
    head, _, started = owner.rpartition(":")
    return f"{head}:{float(started) + seconds:.2f}"


def test_a_clock_that_was_set_leaves_the_living_alive() -> None:
    assert not owner_is_gone(shifted(this_process(), 30))


def test_a_later_process_with_the_same_id_is_another_one() -> None:
    assert owner_is_gone(shifted(this_process(), -3600))


@table("owner", ["", "elsewhere:1:2.0", "elsewhere:{pid}:0", "a:b:c"])
def test_of_others_nothing_is_certain(owner: str) -> None:
    assert not owner_is_gone(owner.format(pid=os.getpid()))


def test_an_owner_that_cannot_be_read_is_not_called_gone() -> None:
    host = this_process().partition(":")[0]
    assert not owner_is_gone(f"{host}:1:soon")
