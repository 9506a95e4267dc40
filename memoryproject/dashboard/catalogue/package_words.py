"""Texts of packages, for the catalogue: the packages themselves have no Hebrew."""
# ruff: noqa: E501

from __future__ import annotations

from django.utils.translation import gettext_noop as _

PACKAGE_WORDS = (
    _("Select record"),
    _("Select action"),
    _("Select action to run"),
    _(
        'Raw passwords are not stored, so there is no way to see this user’s password, but you can change the password using <a href="{}" class="text-primary-600 dark:text-primary-500">this form</a>.'
    ),
    _("Select value"),
    _("Run"),
    _("After you've created a user, you’ll be able to edit more user options."),
    _("Welcome back to"),
    _("Forgotten your password or username?"),
    _("Type to search"),
    _("You have been successfully logged out from the administration"),
    _("No data"),
    _("More actions"),
    _("True"),
    _("False"),
    _("Apply Filters"),
    _("Select all rows"),
    _("No results found"),
    _("Reset filters"),
    _("Previous"),
    _("Next"),
    _("Return to site"),
    _("Choose file to upload"),
    _("Toggle password visibility"),
    _("Date"),
    _("General"),
    _("Image preview"),
    _("Click to download"),
    _("Go back"),
    _("Loading more results..."),
    _("IP Address"),
    _("Attempt Time"),
    _("User Agent"),
    _("Failed Logins"),
    # The names of django-q2's lists and of their columns.
    _("Task"),
    _("Tasks"),
    _("Successful task"),
    _("Successful tasks"),
    _("Failed task"),
    _("Failed tasks"),
    _("Scheduled task"),
    _("Scheduled tasks"),
    _("Queued task"),
    _("Queued tasks"),
    _("Function"),
    _("Started at"),
    _("Stopped at"),
    _("Attempt count"),
    _("Lock until"),
    _("Name"),
    _("Minutes"),
    _("Next Run"),
)
