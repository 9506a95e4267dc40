"""The search for the addresses of the admin site, and for the head of its pages."""

from __future__ import annotations

from django.contrib.admin import AdminSite
from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern, path

from sessions_app.global_search.global_search_page import search_address, search_page

__all__ = ["search_address", "search_urls"]


def search_urls(site: AdminSite) -> list[URLPattern]:
    """Return the URL of the search."""

    def view(request: HttpRequest) -> HttpResponse:
        return search_page(request, site=site.each_context(request))

    return [path("search/", site.admin_view(view), name="global_search")]
