"""Staff accounts and their groups, in the admin."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar

from django.contrib import admin, messages
from django.contrib.admin.utils import unquote
from django.contrib.auth.admin import GroupAdmin, UserAdmin
from django.contrib.auth.hashers import is_password_usable
from django.contrib.auth.models import Group, Permission, User
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.db.models import Count, ManyToManyField, QuerySet
from django.forms import Media, Widget
from django.forms.widgets import Script
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _, gettext_lazy
from unfold.forms import AdminPasswordChangeForm, UserChangeForm, UserCreationForm
from unfold.widgets import UnfoldAdminCheckboxSelectMultipleWidget

from memoryproject.foundation.admin_kit.display import column
from memoryproject.foundation.admin_kit.staff_admin import StaffAdmin
from memoryproject.foundation.admin_kit.staff_pages import OwnPage, staff_page
from memoryproject.foundation.audit.audit_events import staff_actor, staff_record
from memoryproject.staff_site.accounts import groups, second_factor


class PermissionList(UnfoldAdminCheckboxSelectMultipleWidget):  # type: ignore[misc]
    """Checkboxes with a search field above them; without scripts, the checkboxes alone."""

    @property
    def media(self) -> Media:
        # Deferred: it looks for the list, which comes after the page's head.
        script: Any = Script("dashboard/permissions.js", defer=True)
        return Media(css={"all": ["dashboard/permissions.css"]}, js=[script])

    def render(
        self, name: str, value: Any, attrs: dict[str, Any] | None = None, renderer: Any = None
    ) -> SafeString:
        return format_html(
            '<div class="permission-list" data-find="{}" data-none="{}">{}</div>',
            _("Find a permission"),
            _("No permission matches."),
            super().render(name, value, attrs, renderer),
        )


class PasswordState(Widget):
    """Shows whether an account has a password, instead of parts of its hash."""

    read_only = True

    def render(self, name: str, value: Any, attrs: Any = None, renderer: Any = None) -> Any:
        usable = bool(value) and is_password_usable(value)
        text = _("A password is set.") if usable else _("No password is set.")
        return format_html('<div class="readonly">{}</div>', text)

    def id_for_label(self, id_: str | None) -> str:
        """Return nothing: there is no field to which a label could lead."""
        return ""


class StaffUserForm(UserChangeForm):  # type: ignore[misc]
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["password"].widget = PasswordState()


class AuditedAdmin(admin.ModelAdmin):  # type: ignore[type-arg]
    """Records changes of accounts and groups, and offers only what the reader has, too."""

    def formfield_for_manytomany(
        self, db_field: ManyToManyField[Any, Any], request: HttpRequest, **kwargs: Any
    ) -> Any:
        if db_field.name == "groups":
            kwargs["queryset"] = groups.groups_to_give(request.user)
            kwargs["widget"] = UnfoldAdminCheckboxSelectMultipleWidget()
        else:
            kwargs["queryset"] = groups.permissions_offered(request.user)
            kwargs["widget"] = PermissionList()
        field: Any = super().formfield_for_manytomany(db_field, request, **kwargs)
        field.label_from_instance = _shown
        return field

    def record(self, request: HttpRequest, verb: str, obj: Any, fields: Iterable[str] = ()) -> None:
        """Record what was done with a user or group. ``verb``: such as create or remove."""
        noun = obj._meta.model_name
        changed: dict[str, Any] = {"fields": sorted(fields)} if fields else {}
        staff_record(request, f"{noun}.{verb}", noun, obj.pk, **changed)

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        super().save_model(request, obj, form, change)
        fields = {"password" if "password" in name else name for name in form.changed_data}
        if fields or not change:
            self.record(request, "change" if change else "create", obj, fields)

    def delete_model(self, request: HttpRequest, obj: Any) -> None:
        self.record(request, "remove", obj)
        super().delete_model(request, obj)

    @transaction.atomic
    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> None:
        for each in queryset:
            self.record(request, "remove", each)
        super().delete_queryset(request, queryset)


def _shown(choice: Group | Permission) -> str:
    return (
        groups.group_shown(choice.name)
        if isinstance(choice, Group)
        else groups.permission_label(choice)
    )


# Fields that users can't change in their own account, so that they can't promote themselves or lock
# themselves out.
OWN = ("is_active", "is_staff", "is_superuser", "groups", "user_permissions")


class GroupFilter(admin.RelatedFieldListFilter):
    """Filters by group, with the group names that staff see elsewhere."""

    def field_choices(self, field: Any, request: HttpRequest, model_admin: Any) -> Any:
        found = super().field_choices(field, request, model_admin)
        return [(key, groups.group_shown(str(name))) for key, name in found]


class StaffUserAdmin(AuditedAdmin, UserAdmin, StaffAdmin):  # type: ignore[type-arg,misc]
    """The list and form of staff accounts.

    Only superusers make and change superusers. Other staff give no permission that they lack, and
    change nobody who has more permissions than they have.
    """

    form = StaffUserForm
    add_form = UserCreationForm
    change_password_form = AdminPasswordChangeForm
    list_display = (
        "username",
        "first_name",
        "last_name",
        "shown_groups",
        "is_active",
        "last_login",
    )
    # Its time needs its name.
    row_time = ""
    list_filter = ("is_active", "is_superuser", ("groups", GroupFilter))
    fieldsets = (
        (None, {"fields": ("username", "password", "shown_second_factor")}),
        (gettext_lazy("Person"), {"fields": ("first_name", "last_name", "email")}),
        (gettext_lazy("Rights"), {"fields": ("is_active", "is_staff", "is_superuser", "groups")}),
        # Groups are enough for nearly everybody.
        (
            gettext_lazy("Further permissions"),
            {"fields": ("user_permissions",), "classes": ("collapse",)},
        ),
        (gettext_lazy("Dates"), {"fields": ("last_login", "date_joined")}),
    )
    add_fieldsets = (
        (None, {"fields": ("username", "password1", "password2", "is_staff", "groups")}),
    )
    # Screen readers can't read Django's pair of boxes; see formfield_for_manytomany.
    filter_horizontal = ()

    def get_queryset(self, request: HttpRequest) -> QuerySet[User]:
        return super().get_queryset(request).prefetch_related("groups")

    def get_changeform_initial_data(self, request: HttpRequest) -> dict[str, Any]:
        return {**super().get_changeform_initial_data(request), "is_staff": True}

    def get_readonly_fields(self, request: HttpRequest, obj: User | None = None) -> tuple[str, ...]:
        always = ("last_login", "date_joined", "shown_second_factor")
        if obj is not None and obj.pk == request.user.pk:
            own = OWN if not request.user.is_superuser else OWN[:3]
            return (*always, *own)
        return always if request.user.is_superuser else (*always, "is_superuser")

    def has_change_permission(self, request: HttpRequest, obj: User | None = None) -> bool:
        allowed = super().has_change_permission(request, obj)
        return allowed and (obj is None or groups.may_manage_user(request.user, obj))

    def has_delete_permission(self, request: HttpRequest, obj: User | None = None) -> bool:
        if not super().has_delete_permission(request, obj):
            return False
        if obj is None:
            return True
        return obj.pk != request.user.pk and groups.may_manage_user(request.user, obj)

    own_pages: ClassVar[Any] = {"reset_second_factor": OwnPage("<id>/second-factor/", "reset_view")}

    def reset_view(self, request: HttpRequest, id: str) -> HttpResponse:
        """Remove the second factor of a user who lost phone and backup codes.

        Afterwards the password alone is enough to log in.
        """
        user = self.get_object(request, id)
        if not self.has_change_permission(request, user):
            raise PermissionDenied
        if user is None:
            raise Http404
        if user.pk == request.user.pk:
            return HttpResponseRedirect(reverse("admin:two_factor"))
        if request.method == "POST":
            if second_factor.second_factor_remove(user=user, actor=staff_actor(request)):
                messages.success(request, _("The second factor was reset."))
            return HttpResponseRedirect(reverse("admin:auth_user_change", args=[user.pk]))
        context = {"original": user}
        return staff_page(
            request,
            "admin/access/reset_second_factor.html",
            _("Reset the second factor"),
            context,
            of=self.model,
        )

    def user_change_password(self, request: HttpRequest, id: str, form_url: str = "") -> Any:
        """Change another user's password; redirect from the user's own account.

        The account is looked up like in Django: 7, +7 and 007 are one account. Users change their
        own password on the page that asks for the old one, so that a person who finds an open
        session can't take over the account.
        """
        user = self.get_object(request, unquote(id))
        own = user is not None and user.pk == request.user.pk
        if own and self.has_change_permission(request, user):
            return HttpResponseRedirect(reverse("admin:password_change"))
        if user is None or request.method != "POST":
            return super().user_change_password(request, id, form_url)
        with transaction.atomic():
            before = User.objects.select_for_update().get(pk=user.pk)
            answer = super().user_change_password(request, id, form_url)
            if User.objects.get(pk=user.pk).password != before.password:
                self.record(request, "password", user)
        return answer

    @admin.display(description=gettext_lazy("groups"))
    def shown_groups(self, user: User) -> str:
        return ", ".join(groups.group_shown(group.name) for group in user.groups.all()) or "–"

    @admin.display(description=gettext_lazy("two-factor login"))
    def shown_second_factor(self, user: User) -> str:
        if second_factor.device_of(user) is None:
            return _("off")
        address = reverse("admin:auth_user_reset_second_factor", args=[user.pk])
        return format_html('{} · <a href="{}">{}</a>', _("on"), address, _("Reset it"))


class StaffGroupAdmin(AuditedAdmin, GroupAdmin, StaffAdmin):  # type: ignore[misc]
    """The list and form of groups.

    The groups of every installation keep their names, by which later versions find them.
    """

    list_display = ("shown_name", "shown_people")
    fields = ("name", "permissions")
    filter_horizontal = ()

    def row_name(self, request: HttpRequest, row: Any) -> str:
        return groups.group_shown(row.name)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Group]:
        return super().get_queryset(request).annotate(people=Count("user"))

    def get_readonly_fields(
        self, request: HttpRequest, obj: Group | None = None
    ) -> tuple[str, ...]:
        return ("name",) if obj is not None and obj.name in groups.GROUPS else ()

    def has_change_permission(self, request: HttpRequest, obj: Group | None = None) -> bool:
        allowed = super().has_change_permission(request, obj)
        return allowed and (obj is None or groups.may_manage_group(request.user, obj))

    def has_delete_permission(self, request: HttpRequest, obj: Group | None = None) -> bool:
        allowed = super().has_delete_permission(request, obj)
        if not allowed or obj is None:
            return allowed
        return obj.name not in groups.GROUPS and groups.may_manage_group(request.user, obj)

    shown_name = column(gettext_lazy("group"), lambda group: groups.group_shown(group.name))
    shown_people = column(gettext_lazy("people"), lambda group: int(group.people))
