"""Prepare the database of an installation."""

from io import StringIO
from typing import Any

from django.core.checks import Tags
from django.core.management import call_command
from django.core.management.base import CommandError

from memoryproject.foundation.commands import DeclaredCommand
from memoryproject.management.commands.migrate import is_upgrade
from memoryproject.stored_schema import OtherSchemaError, schema_check
from sessions_app.stored_settings import stored_settings_look


class Command(DeclaredCommand):
    def handle(self, *args: Any, **options: Any) -> None:
        call_command("check", stdout=StringIO())
        call_command("migrate", verbosity=int(is_upgrade()), stdout=self.stdout)
        try:
            schema_check()
        except OtherSchemaError as error:
            raise CommandError(str(error)) from None
        stored_settings_look(at_once=True)
        call_command("createcachetable", verbosity=0)
        call_command("install_schedules", stdout=StringIO())
        # Not those of the settings again: what is stored can only be corrected while it runs.
        call_command("check", tags=[Tags.database], databases=["default"], stdout=StringIO())
        call_command("memories_reembed", init=True, stdout=StringIO())
        call_command("ensure_admin", stdout=self.stdout)
