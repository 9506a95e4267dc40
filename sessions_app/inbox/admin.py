"""Admin of labels for users who review conversations."""

from typing import Any

from django.contrib import admin
from django.db.models import Count, QuerySet
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.translation import gettext_lazy as _

from memoryproject.foundation.admin_kit.display import shown_link
from sessions_app.models import Label
from sessions_app.presentation.audited_view import RecordedAdmin
from sessions_app.presentation.links import list_address

REVIEW = "sessions_app.review_chat"


@admin.register(Label)
class LabelAdmin(RecordedAdmin):
    recorded_as = "label"
    list_display = ("shown_name", "chats")
    fields = ("name", "colour")
    search_fields = ("name",)
    actions = None

    def get_queryset(self, request: HttpRequest) -> QuerySet[Label]:
        return super().get_queryset(request).annotate(chats=Count("chat_labels"))

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return request.user.has_perm("sessions_app.view_chat")

    def has_module_permission(self, request: HttpRequest) -> bool:
        return self.has_view_permission(request)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm(REVIEW)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return request.user.has_perm(REVIEW)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return request.user.has_perm(REVIEW)

    @admin.display(description=_("label"), ordering="name")
    def shown_name(self, label: Label) -> str:
        return format_html('<bdi class="label {}">{}</bdi>', label.colour, label.name)

    @admin.display(description=_("conversations"), ordering="chats")
    def chats(self, label: Any) -> str:
        return shown_link(list_address("sessions_app_chat", label=label.pk), str(label.chats))
