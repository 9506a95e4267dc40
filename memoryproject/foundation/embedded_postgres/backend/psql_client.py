"""Run ``manage.py dbshell`` with the psql that comes with the embedded server."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.db import OperationalError
from django.db.backends.postgresql import client

from memoryproject.foundation.embedded_postgres import EmbeddedPostgresError
from memoryproject.foundation.embedded_postgres.backend.options import server_of
from memoryproject.foundation.embedded_postgres.binaries import postgres_program


class DatabaseClient(client.DatabaseClient):
    """The dbshell client. It starts the server first; this process keeps it running for psql."""

    @classmethod
    def settings_to_cmd_args_env(
        cls, settings_dict: dict[str, Any], parameters: Iterable[str]
    ) -> tuple[list[str], dict[str, str] | None]:
        """Return the psql command and its environment, with the server's password."""
        password = server_of(settings_dict).password
        arguments, environment = super().settings_to_cmd_args_env(
            {**settings_dict, "PASSWORD": password}, parameters
        )
        return [str(postgres_program("psql")), *arguments[1:]], environment

    def runshell(self, parameters: Iterable[str]) -> None:
        """Open psql. Raises django.db.OperationalError when the server can't be started."""
        try:
            server_of(self.connection.settings_dict).ensure_running()
        except EmbeddedPostgresError as error:
            raise OperationalError(str(error)) from error
        super().runshell(parameters)
