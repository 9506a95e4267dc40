"""Create the database inside the server, with the vector extension, when it is missing."""

from __future__ import annotations

from typing import Any

import psycopg
from psycopg import sql

from memoryproject.foundation.embedded_postgres.cluster import ROLE
from memoryproject.foundation.embedded_postgres.errors import EmbeddedPostgresError
from memoryproject.foundation.embedded_postgres.places import PORT, Places

DATABASE = "memory"
_EXTENSION = "vector"


def provision(places: Places, password: str) -> None:
    """Create the database and its extension where they are missing. Call under the start lock.

    Raises EmbeddedPostgresError when the login fails or the server refuses.
    """
    try:
        with _connect(places, password, "postgres") as connection:
            query = "SELECT 1 FROM pg_database WHERE datname = %s"
            if connection.execute(query, [DATABASE]).fetchone() is None:
                name = sql.Identifier(DATABASE)
                connection.execute(sql.SQL("CREATE DATABASE {}").format(name))
        with _connect(places, password, DATABASE) as connection:
            query = "SELECT 1 FROM pg_extension WHERE extname = %s"
            if connection.execute(query, [_EXTENSION]).fetchone() is None:
                name = sql.Identifier(_EXTENSION)
                connection.execute(sql.SQL("CREATE EXTENSION {}").format(name))
    except psycopg.Error as error:
        raise EmbeddedPostgresError(
            f"PostgreSQL on {places.cluster} runs, but its database can't be used: "
            f"{str(error).strip()} Its log is {places.log}, its password {places.password}."
        ) from error


def _connect(places: Places, password: str, database: str) -> psycopg.Connection[Any]:
    return psycopg.connect(
        host=str(places.socket_dir),
        port=PORT,
        user=ROLE,
        password=password,
        dbname=database,
        autocommit=True,
        connect_timeout=30,
    )
