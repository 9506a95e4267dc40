"""Django's PostgreSQL backend, which starts the embedded server when a connection needs it.

``OPTIONS["embedded_data_dir"]`` names the DATA_DIR of the server.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from django.core.exceptions import ImproperlyConfigured
from django.db import OperationalError
from django.db.backends.postgresql import base, client
from psycopg import Connection

from memoryproject.foundation.embedded_postgres import (
    EmbeddedPostgres,
    EmbeddedPostgresError,
    embedded_postgres,
)
from memoryproject.foundation.embedded_postgres.places import postgres_program

# Run ``manage.py dbshell`` with the psql that comes with the embedded server.


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


class DatabaseWrapper(base.DatabaseWrapper):
    """A connection that starts its server on first use, and again after the server was killed."""

    client_class = DatabaseClient

    def get_connection_params(self) -> dict[str, Any]:
        """Return Django's parameters without our own option, which the driver doesn't know."""
        params: dict[str, Any] = super().get_connection_params()
        params.pop(DATA_DIR_OPTION, None)
        return params

    def get_new_connection(self, conn_params: dict[str, Any]) -> Connection[Any]:
        """Connect; if that fails, ensure that the server runs and connect again.

        Raises django.db.OperationalError with the reason when the server can't be started.
        """
        server = server_of(self.settings_dict)
        try:
            if not server.is_held:
                server.ensure_running()
            try:
                return self._connect(server, conn_params)
            except self.Database.OperationalError:
                server.ensure_running()
                return self._connect(server, conn_params)
        except EmbeddedPostgresError as error:
            raise OperationalError(str(error)) from error

    def _connect(self, server: EmbeddedPostgres, conn_params: dict[str, Any]) -> Connection[Any]:
        # The server's first start creates the password, after the settings were read.
        params = {**conn_params, "password": server.password}
        connection: Connection[Any] = super().get_new_connection(params)
        return connection


# Find the embedded server that a Django database setting refers to.

DATA_DIR_OPTION = "embedded_data_dir"


def server_of(settings: Mapping[str, Any]) -> EmbeddedPostgres:
    """Return the embedded server of one entry of DATABASES.

    Raises ImproperlyConfigured when the entry doesn't name its DATA_DIR.
    """
    data_dir = settings.get("OPTIONS", {}).get(DATA_DIR_OPTION)
    if not data_dir:
        raise ImproperlyConfigured(
            f"DATABASES uses the embedded backend without OPTIONS['{DATA_DIR_OPTION}']."
        )
    return embedded_postgres(Path(data_dir))
