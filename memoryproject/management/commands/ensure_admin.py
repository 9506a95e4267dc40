"""Create the first admin user."""

import secrets
from typing import Any

from django.conf import settings
from django.contrib.auth import get_user_model

from memoryproject.foundation.commands import DeclaredCommand

USERNAME = "admin"


class Command(DeclaredCommand):
    def handle(self, *args: Any, **options: Any) -> None:
        users = get_user_model()._default_manager
        admin = users.filter(username=USERNAME).first()
        wanted = settings.ADMIN_PASSWORD
        if admin is None:
            password = wanted or secrets.token_urlsafe(12)
            users.create_superuser(username=USERNAME, password=password)
            shown = "the one in ADMIN_PASSWORD" if wanted else password
            self.stdout.write(f"Admin user “{USERNAME}” was made. Password: {shown}")
        elif wanted and not admin.check_password(wanted):
            admin.set_password(wanted)
            admin.save(update_fields=["password"])
            self.stdout.write(f"The password of “{USERNAME}” is the one in ADMIN_PASSWORD now.")
