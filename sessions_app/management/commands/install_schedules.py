"""Install the schedules of background work."""

from typing import Any

from django.core.management.base import BaseCommand

from sessions_app.schedules import schedules_install


class Command(BaseCommand):
    help = "Install the schedules of background work. Running it again changes nothing."

    def handle(self, *args: Any, **options: Any) -> None:
        for name, made in schedules_install().items():
            self.stdout.write(f"{name}: {'installed' if made else 'already there'}")
