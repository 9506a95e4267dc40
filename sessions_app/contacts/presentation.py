"""The pages of contacts, for the addresses of the admin site."""

from __future__ import annotations

from collections.abc import Callable

from django.contrib.admin import AdminSite
from django.http import HttpResponseBase
from django.urls import URLPattern, path

from sessions_app.contacts.contact_pages import contact_page, contacts_page, edit_page, export_page
from sessions_app.contacts.merge_pages import merge_find_page, merge_page, split_page, undo_page

PAGES: tuple[tuple[str, Callable[..., HttpResponseBase], str], ...] = (
    ("", contacts_page, "contacts"),
    ("<uuid:chat_id>/", contact_page, "contact"),
    ("<uuid:chat_id>/edit/", edit_page, "contact_edit"),
    ("<uuid:chat_id>/export/", export_page, "contact_export"),
    ("<uuid:chat_id>/merge/", merge_find_page, "contact_merge_find"),
    ("<uuid:chat_id>/merge/<uuid:other_id>/", merge_page, "contact_merge"),
    ("<uuid:chat_id>/split/", split_page, "contact_split"),
    ("merges/<uuid:merge_id>/undo/", undo_page, "contact_merge_undo"),
)


def contact_urls(site: AdminSite) -> list[URLPattern]:
    """Return the URLs below /admin/contacts/."""
    return [
        path(f"contacts/{route}", site.admin_view(page), name=name) for route, page, name in PAGES
    ]
