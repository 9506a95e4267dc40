"""The pages of API tokens: create, show once, revoke; and consent to those of applications."""

from datetime import datetime
from typing import Any, ClassVar
from uuid import UUID

from django import forms
from django.conf import settings
from django.contrib import admin
from django.core import signing
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.utils.translation import gettext as _, gettext_lazy, ngettext

from memoryproject.foundation.admin_kit import staff_admin, staff_pages
from memoryproject.foundation.admin_kit.display import column, moment_shown, shown_mark
from memoryproject.foundation.audit.audit_events import staff_actor
from memoryproject.foundation.integrations.lenient import phone_digits
from memoryproject.foundation.oauth.grants import ConsentRequest, grant_create
from memoryproject.foundation.rest_kit import tokens
from memoryproject.foundation.rest_kit.models import READ, SCOPE_HELP, SCOPES, ApiToken
from sessions_app.conversations.chat_queries import check_chats, token_chats
from sessions_app.models import Chat


class AccessForm(forms.ModelForm):  # type: ignore[type-arg]
    """What a token may do. A new one has the least: who wants all chats says so."""

    scopes = forms.MultipleChoiceField(
        label=gettext_lazy("May"),
        choices=lambda: [(scope, f"{scope}: {SCOPE_HELP[scope]}") for scope in SCOPES],
        initial=[READ],
        widget=forms.CheckboxSelectMultiple,
    )
    chats = forms.CharField(
        label=gettext_lazy("Chats"),
        required=False,
        widget=forms.Textarea(attrs={"rows": 3, "dir": "ltr"}),
        help_text=gettext_lazy(
            "It sees nothing of any other chat. One per line, such as 15550100123@c.us."
        ),
    )
    every_chat = forms.BooleanField(label=gettext_lazy("All chats"), required=False)

    class Meta:
        model = ApiToken
        fields: tuple[str, ...] = ("name", "scopes")

    def clean_chats(self) -> list[str]:
        typed = (line.strip() for line in self.cleaned_data["chats"].splitlines())
        # Numbers as people write them, with blanks; ids, of which a line may hold several.
        names = [
            name
            for line in typed
            for name in ([phone_digits(line)] if phone_digits(line) else line.split())
        ]
        try:
            check_chats(names)
        except tokens.TokenError as error:
            raise forms.ValidationError(str(error)) from error
        return names

    def clean(self) -> dict[str, Any]:
        """Report in the form what the service would refuse, before anything is created."""
        cleaned = super().clean() or {}
        if "chats" not in self.errors and bool(cleaned["chats"]) == cleaned["every_chat"]:
            self.add_error("chats", _("Name chats, or choose all chats."))
        if not str(cleaned.get("name", "x")).isprintable():
            self.add_error("name", _("A name holds printable characters only."))
        return cleaned

    def chat_ids(self) -> list[UUID] | None:
        """Return the named chats, which are created where they are missing; None for all."""
        names = self.cleaned_data["chats"]
        return token_chats(names) if names else None


class TokenForm(AccessForm):
    """A new token. Who wants one that never expires says so."""

    never_expires = forms.BooleanField(label=gettext_lazy("Never expires"), required=False)

    class Meta(AccessForm.Meta):
        fields = ("name", "scopes", "expires_at")
        help_texts: ClassVar[dict[str, str]] = {"name": ""}

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean()
        expires = cleaned.get("expires_at")
        if "expires_at" not in self.errors and (expires is None) != cleaned["never_expires"]:
            self.add_error("expires_at", _("Give a time, or choose that it never expires."))
        if expires is not None and expires <= timezone.now():
            self.add_error("expires_at", _("A token can't expire in the past."))
        return cleaned


class ConsentForm(AccessForm):
    """What an application is allowed, of what it asks for."""

    def __init__(self, wanted: ConsentRequest, data: Any = None) -> None:
        super().__init__(
            data, initial={"name": wanted.name or wanted.place, "scopes": wanted.scopes}
        )
        scopes: Any = self.fields["scopes"]
        scopes.choices = [choice for choice in scopes.choices if choice[0] in wanted.scopes]


def _end_of(token: ApiToken) -> datetime | None:
    """Applications replace their tokens each hour, for as long as they use them."""
    return token.grant.ends_at if hasattr(token, "grant") else token.expires_at


@admin.register(ApiToken)
class ApiTokenAdmin(staff_admin.ReadOnlyAdmin):
    """Tokens are created and revoked, never changed or deleted: the audit log refers to them.

    Those of applications are replaced and cleaned up by themselves.
    """

    form = TokenForm
    list_before_template = "admin/operations/list_tabs.html"
    actions = ("revoke_selected",)
    list_display = (
        "name",
        "prefix",
        "application",
        "shown_scopes",
        "shown_state",
        "last_used_at",
        "valid_until",
    )
    list_select_related = ("grant__client",)
    # Its times need their names.
    row_time = ""
    list_filter = (("grant", admin.EmptyFieldListFilter), "expires_at", "last_used_at")
    search_fields = ("name", "prefix")
    allowed = ("add",)
    given = ("name", "scopes", "chats", "every_chat", "expires_at", "never_expires")
    made = (None, "name prefix application shown_scopes bound_to shown_state")
    times = (gettext_lazy("Times"), "created_at created_by valid_until revoked_at last_used_at")
    fieldsets = staff_admin.sections(made, times)
    own_pages: ClassVar[Any] = {
        "consent": staff_pages.OwnPage("consent/", "consent", "GET HEAD POST")
    }

    def get_fieldsets(self, request: HttpRequest, obj: ApiToken | None = None) -> Any:
        return super().get_fieldsets(request, obj) if obj else ((None, {"fields": self.given}),)

    def has_revoke_permission(self, request: HttpRequest) -> bool:
        """Allow users who may change tokens; the page itself offers no changes."""
        return request.user.has_perm("api.change_apitoken")

    def save_model(self, request: HttpRequest, obj: ApiToken, form: Any, change: bool) -> None:
        """Let the service create the row, with its digest and its audit event."""
        data = form.cleaned_data
        made = tokens.token_create(
            name=data["name"],
            scopes=data["scopes"],
            chat_ids=form.chat_ids(),
            expires_at=data["expires_at"],
            actor=staff_actor(request),
        )
        obj.pk = made.token.pk
        obj.prefix = made.token.prefix
        request.__dict__["made_token"] = made

    def response_add(
        self, request: HttpRequest, obj: ApiToken, post_url_continue: str | None = None
    ) -> HttpResponse:
        """Show the token only on this page: a notice would be stored in the session."""
        made: tokens.NewToken = request.__dict__["made_token"]
        context = {"made": made}
        return staff_pages.unstored(
            staff_pages.staff_page(
                request, "admin/api_token_made.html", _("The new token"), context, of=self.model
            )
        )

    @admin.action(description=gettext_lazy("Revoke"), permissions=["revoke"])
    def revoke_selected(self, request: HttpRequest, queryset: QuerySet[ApiToken]) -> None:
        actor = staff_actor(request)
        revoked = sum(
            tokens.token_revoke(token_id=key, actor=actor)
            for key in queryset.values_list("pk", flat=True)
        )
        text = ngettext("%(count)d token was revoked.", "%(count)d tokens were revoked.", revoked)
        self.message_user(request, text % {"count": revoked})

    def consent(self, request: HttpRequest) -> HttpResponse:
        """Ask whether an application may use the MCP server (?request=…, which is signed)."""
        staff_pages.rights_required(request, "api.add_apitoken")
        try:
            wanted = ConsentRequest.read(request.GET.get("request", ""))
        except signing.BadSignature:
            why = _("Its request has expired, or isn't complete.")
            return render(request, "400_oauth.html", {"why": why}, status=400)
        if not settings.MCP_OAUTH:
            raise Http404
        if "deny" in request.POST:
            return wanted.answer({"error": "access_denied"})
        form = ConsentForm(wanted, request.POST if request.method == "POST" else None)
        if form.is_valid():
            try:
                code = grant_create(
                    wanted,
                    name=form.cleaned_data["name"],
                    scopes=form.cleaned_data["scopes"],
                    chat_ids=form.chat_ids(),
                    actor=staff_actor(request),
                )
                return wanted.answer({"code": code})
            except tokens.TokenError as error:
                form.add_error(None, str(error))
        page = staff_pages.staff_page(
            request,
            "admin/oauth_consent.html",
            _("Connect an application"),
            {"wanted": wanted, "form": form},
            of=self.model,
            status=422 if form.is_bound else 200,
        )
        # Browsers hold the form to this also where it is redirected to the application, and
        # where that redirects further.
        page._csp_update = {"form-action": [f"{wanted.scheme}:"]}  # type: ignore[attr-defined]
        return page

    shown_scopes = column(gettext_lazy("permissions"), lambda token: ", ".join(token.scopes))

    @admin.display(description=gettext_lazy("application"))
    def application(self, token: ApiToken) -> str:
        if not hasattr(token, "grant"):
            return ""
        return token.grant.client.metadata.get("client_name") or _("unnamed")

    valid_until = column(
        gettext_lazy("expires at"),
        lambda token: moment_shown(end) if (end := _end_of(token)) else "–",
        ordering="expires_at",
    )

    @admin.display(description=gettext_lazy("chats"))
    def bound_to(self, token: ApiToken) -> str:
        if token.chat_ids is None:
            return _("no chat: it sees all")
        chats = Chat.objects.filter(pk__in=token.chat_ids)
        named = sorted(chats.values_list("whatsapp_chat", flat=True))
        gone = len(token.chat_ids) - len(named)
        if not gone:
            return ", ".join(named)
        text = ngettext("%(count)d that is erased", "%(count)d that are erased", gone)
        return ", ".join([*named, text % {"count": gone}])

    @admin.display(description=gettext_lazy("state"))
    def shown_state(self, token: ApiToken) -> str:
        if token.revoked_at:
            return shown_mark(_("revoked"), "bad")
        ends_at = _end_of(token)
        if ends_at is not None and ends_at <= timezone.now():
            return shown_mark(_("expired"), "bad")
        return shown_mark(_("valid"), "good")
