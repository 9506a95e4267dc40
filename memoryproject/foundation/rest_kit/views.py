"""The base classes of all API views, ETags, and the addresses that all APIs have."""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, TypeVar
from uuid import UUID

from django.db.models import Model, Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.urls import path, re_path, register_converter
from django.urls.converters import UUIDConverter
from django.utils.http import parse_etags, quote_etag
from django.views.decorators.csrf import csrf_exempt
from django_filters.rest_framework import DjangoFilterBackend
from rest_framework.exceptions import APIException, AuthenticationFailed, NotAuthenticated, NotFound
from rest_framework.generics import GenericAPIView
from rest_framework.mixins import ListModelMixin
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import Serializer

from memoryproject.foundation.audit.audit_events import audit_record
from memoryproject.foundation.process.narrowing import present
from memoryproject.foundation.rest_kit import bodies, errors
from memoryproject.foundation.rest_kit.authentication import Caller, caller_of
from memoryproject.foundation.rest_kit.bodies import Json, drain
from memoryproject.foundation.rest_kit.operations import Refusal
from memoryproject.foundation.rest_kit.pagination import CursorPages
from memoryproject.foundation.rest_kit.serializers import OBJECT, checked_data, json_kind
from memoryproject.foundation.rest_kit.where import Fields, read_where

# Allowed in every query: it selects the renderer.
ALWAYS_ALLOWED = frozenset({"format"})
Row = TypeVar("Row", bound=Model)
UNKNOWN_CALLERS = (AuthenticationFailed, NotAuthenticated)


class ApiView(GenericAPIView[Any]):
    """The base view. See the package's docstring for the attributes that a view declares.

    ``staff_rights``: by method, the admin permissions that staff need, where they differ from those
        of its scope. What a staff member may not do in the admin isn't allowed here either.
    ``raises``: for each service error, the function that converts it to a response. The first match
        counts.
    ``answers``: by method, the schema's responses in addition to those of all operations.
    ``max_body_bytes``: larger bodies are refused with 413.
    ``needs_body``: whether POST requires a body.
    ``repeatable``: parameters that may be given several times.
    ``serializer_class``: of GET's answer, or of the rows of a list. Its fields can be chosen by the
        parameter ``fields``.
    ``where_fields``: what the parameter ``where`` of a GET may name. ``self.where`` has the filter.
    """

    scopes: ClassVar[Mapping[str, str]] = {}
    staff_rights: ClassVar[Mapping[str, Sequence[str]]] = {}
    kinds: ClassVar[Mapping[str, str]] = {}
    raises: ClassVar[Mapping[type[Exception], Callable[[Exception], APIException]]] = {}
    answers: ClassVar[Mapping[str, Sequence[Refusal]]] = {}
    bound_tokens: ClassVar[bool] = True
    query_serializer_class: ClassVar[type[Serializer[Any]] | None] = None
    max_body_bytes: ClassVar[int] = bodies.MAX_BODY_SIZE
    needs_body: ClassVar[bool] = True
    repeatable: ClassVar[frozenset[str]] = frozenset()
    where_fields: ClassVar[Fields] = {}
    serializer_class = Serializer
    idempotency_ref: str | None = None
    query: dict[str, Any]
    where = Q()
    chosen_fields: Sequence[str] = ()

    @property
    def caller(self) -> Caller:
        # The permissions refuse unauthenticated callers before this point.
        return present(caller_of(self.request))

    def initialize_request(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Request:
        """Build the request, including a chunked body, which Django takes for an empty one."""
        made = super().initialize_request(request, *args, **kwargs)
        if bodies.is_chunked(request) and request.META.get("wsgi.input_terminated"):
            made._stream = request.META["wsgi.input"]
        return made

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        if bodies.is_chunked(request._request) and not request.META.get("wsgi.input_terminated"):
            raise errors.LengthRequired
        coding = request.headers.get("Content-Encoding", "identity").strip().lower()
        if coding not in ("", "identity") and request.method in ("POST", "PUT", "PATCH"):
            raise errors.UnsupportedEncoding
        if any("\x00" in value for value in kwargs.values() if isinstance(value, str)):
            raise NotFound("The address holds a NUL character.")
        self._check_query(request)

    def get_throttles(self) -> list[Any]:
        """Keep the throttles: they know what to say in the response."""
        self._throttles = super().get_throttles()
        return self._throttles

    def finalize_response(self, request: Request, response: Any, *args: Any, **kwargs: Any) -> Any:
        for throttle in getattr(self, "_throttles", ()):
            for name, text in throttle.headers().items():
                response.headers[name] = text
        if self.chosen_fields and response.status_code == 200:
            response.data = self.with_chosen_fields(response.data)
        return super().finalize_response(request, response, *args, **kwargs)

    def _check_query(self, request: Request) -> None:
        """Refuse unknown, repeated and empty parameters; set ``self.query``.

        Unknown and repeated parameters would otherwise be ignored. ``self.query`` has the checked
        values of the view's query serializer.
        """
        known = self.query_parameters()
        for name, texts in request.query_params.lists():
            if name not in known:
                listed = ", ".join(sorted(known)) or "none"
                raise errors.refuse(
                    f"There is no such parameter here. There are: {listed}.",
                    code="unknown_parameter",
                    attr=name[:100],
                )
            if len(texts) > 1 and name not in self.repeatable:
                raise errors.refuse("It is given more than once.", code="repeated", attr=name)
            if not all(texts):
                # An unset variable in a script causes this: it would widen the result.
                raise errors.refuse("It is empty: leave it out.", code="blank", attr=name)
        self.query = {}
        if self.query_serializer_class is not None:
            names = self.query_serializer_class().fields
            given = {name: text for name, text in request.query_params.items() if name in names}
            self.query = checked_data(self.query_serializer_class, given)
        if "where" in known and "where" in request.query_params:
            self.where = read_where(request.query_params["where"], self.where_fields)
        if "fields" in known and "fields" in request.query_params:
            self.chosen_fields = self._read_fields(request.query_params["fields"])

    def _read_fields(self, text: str) -> list[str]:
        names = [name.strip() for name in text.split(",")]
        known = self.serializer_class._declared_fields
        unknown = next((name for name in names if name not in known), None)
        if unknown is not None:
            detail = f'There is no field "{unknown[:50]}" here. There are: {", ".join(known)}.'
            raise errors.refuse(detail, code="unknown_field", attr="fields")
        return names

    def with_chosen_fields(self, data: Any) -> Any:
        """Return the object with the fields that the caller chose."""
        return {name: value for name, value in data.items() if name in self.chosen_fields}

    def query_parameters(self) -> set[str]:
        """Return the parameter names that are allowed in the query."""
        known = set(ALWAYS_ALLOWED)
        if self.request.method in ("GET", "HEAD"):
            offered = {"fields": self.serializer_class._declared_fields, "where": self.where_fields}
            known |= {name for name, choices in offered.items() if choices}
        if self.query_serializer_class is not None:
            known |= set(self.query_serializer_class().fields)
        return known

    def body(
        self, serializer_class: type[Serializer[Any]], *, partial: bool = False
    ) -> dict[str, Any]:
        """Return the body's checked data. Raises ValidationError."""
        if not isinstance(self.request.data, Mapping):
            raise errors.refuse(f"The body must be {OBJECT}, not {json_kind(self.request.data)}.")
        return checked_data(serializer_class, self.request.data, partial=partial)

    def one_of(self, rows: QuerySet[Row], name: str) -> Row:
        """Return the only row; raise NotFound if it is missing or out of reach."""
        row = rows.first()
        if row is None:
            raise NotFound(f"There is no {name}.")
        return row

    def handle_exception(self, exc: Exception) -> Response:
        for kind, make in self.raises.items():
            if isinstance(exc, kind):
                exc = make(exc)
                break
        request = self.request._request
        is_unread = not getattr(request, "_read_started", True)
        if is_unread and not (isinstance(exc, UNKNOWN_CALLERS) and bodies.may_be_slow(request)):
            # A client that is still sending must see the response.
            bodies.drain((bodies.is_chunked(request) and self.request.stream) or request)
        # Also for callers that asked for YAML or events: all errors have one shape.
        self.request.accepted_renderer = Json()
        self.request.accepted_media_type = Json.media_type
        return super().handle_exception(exc)

    def record_read(
        self, *, object_type: str, object_id: object, chat_id: UUID | None = None
    ) -> None:
        """Record in the audit log that staff read what people said.

        Integrations read constantly, so their reads are not recorded.
        """
        if self.caller.is_staff:
            audit_record(
                "conversation.read", self.caller.actor, object_type, object_id, chat_id=chat_id
            )


class ListView(ListModelMixin, ApiView):
    """A view whose GET returns pages.

    ``ordering``: see CursorPages.
    ``sortable``: fields by which the parameter ``ordering`` can sort. An index has each of them,
        with the last field of ``ordering`` for equal ones.
    ``reach_field``: the field with a row's chat.
    ``filterset_class``: django-filter's class, whose parameters are the known ones.
    """

    pagination_class: Any = CursorPages
    filter_backends: Any = (DjangoFilterBackend,)
    ordering: ClassVar[tuple[str, ...]] = ("-id",)
    sortable: ClassVar[tuple[str, ...]] = ()
    reach_field: ClassVar[str] = "chat_id"
    filterset_class: Any = None

    def query_parameters(self) -> set[str]:
        filters = set(self.filterset_class.base_filters) if self.filterset_class else set()
        own = {"cursor", "limit", *(["ordering"] if self.sortable else [])}
        return super().query_parameters() | own | filters

    def page_ordering(self) -> Sequence[str]:
        """Return the fields of the order. Raises ValidationError."""
        given = self.request.query_params.get("ordering")
        if given is None:
            return self.ordering
        orders = orders_of(self.sortable)
        if given not in orders:
            detail = f"It is one of {', '.join(orders)}."
            raise errors.refuse(detail, code="invalid_choice", attr="ordering")
        way = "-" if given.startswith("-") else ""
        return list(dict.fromkeys([given, way + self.ordering[-1].lstrip("-")]))

    def with_chosen_fields(self, data: Any) -> Any:
        rows = [super(ListView, self).with_chosen_fields(row) for row in data["results"]]
        return {**data, "results": rows}

    def within_reach(self) -> QuerySet[Any]:
        """Return the part of the view's queryset that the caller may access."""
        return self.get_queryset().filter(self.caller.reach(self.reach_field))

    def page_of(self, rows: QuerySet[Any]) -> Response:
        """Return a page of the rows, filtered by the query."""
        page = self.paginate_queryset(self.filter_queryset(rows).filter(self.where))
        serializer = self.get_serializer_class()(page, many=True)
        return self.get_paginated_response(serializer.data)


def orders_of(sortable: Sequence[str]) -> list[str]:
    """Return the values of the parameter ``ordering``."""
    return [way + name for name in sortable for way in ("", "-")]


# ETags: read again only what changed, and edit only a version that the caller has seen.


def etag_of(*parts: object) -> str:
    """Return a strong ETag of a version's parts, such as an id and the time of the last change."""
    text = "\0".join(map(str, parts))
    return quote_etag(hashlib.sha256(text.encode()).hexdigest()[:32])


def etag_of_document(document: Mapping[str, Any]) -> str:
    """Return the ETag of an object as the API shows it."""
    return etag_of(json.dumps(document, sort_keys=True, default=str))


def etagged(request: Request, document: Mapping[str, Any], *, etag: str = "") -> Response:
    """Return the object with its ETag, or 304 where the caller has this version.

    ``etag``: that of the version, if it isn't the document's.
    """
    headers = {"ETag": etag or etag_of_document(document)}
    if is_known(request, headers["ETag"]):
        return Response(status=304, headers=headers)
    return Response(document, headers=headers)


def is_known(request: Request, etag: str) -> bool:
    """Return whether the caller already has this version (If-None-Match): answer 304."""
    return _names(request.headers.get("If-None-Match", ""), etag)


def require_match(request: Request, etag: str) -> None:
    """Check If-Match. Raises PreconditionFailed where it names another version.

    A proxy that compresses marks ETags as weak: they name the same version. Call it with the row
    locked, before the row is changed. Without If-Match the last write wins.
    """
    header = request.headers.get("If-Match")
    if header is None:
        return
    if not _names(header, etag):
        raise errors.PreconditionFailed


def require_precondition(request: Request, etag: str | None, what: str) -> None:
    """Check the preconditions of a PUT. Raises PreconditionFailed.

    ``etag``: of what is there, a document or such; None: nothing. Call it as ``require_match``.
    """
    if etag is None:
        if "If-Match" in request.headers:
            raise errors.PreconditionFailed(
                f"There is no such {what}: without If-Match it is made."
            )
    elif is_known(request, etag):
        raise errors.PreconditionFailed(f"There is such a {what} already.")
    else:
        require_match(request, etag)


def _names(header: str, etag: str) -> bool:
    """Return whether the ETags of a header name this version; weak ones do, too."""
    named = parse_etags(header)
    return "*" in named or etag in [tag.removeprefix("W/") for tag in named]


# Addresses: the schema and its page, the response to unknown addresses, and ids in paths.


ID = "id"


class IdConverter(UUIDConverter):
    """A UUID, in upper case, too: so some languages write it, such as Swift.

    Django's own converter refuses it.
    """

    regex = "[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}"


register_converter(IdConverter, ID)


# What makes the schema and its page is imported when they are requested: it is slow.


@csrf_exempt
def schema(request: HttpRequest) -> HttpResponseBase:
    """Return the schema of the API."""
    from drf_spectacular.views import SpectacularAPIView  # noqa: PLC0415 slow

    return SpectacularAPIView.as_view(throttle_classes=())(request)


@csrf_exempt
def schema_page(request: HttpRequest) -> HttpResponseBase:
    """Return the page that shows the schema, or its script."""
    from drf_spectacular.views import SpectacularSwaggerSplitView  # noqa: PLC0415 slow

    view = SpectacularSwaggerSplitView.as_view(
        url_name="api-schema",
        throttle_classes=(),
        # It has no template for what OPTIONS tells.
        http_method_names=["get", "head"],
    )
    return view(request)


@csrf_exempt
def nowhere(request: HttpRequest) -> HttpResponse:
    """Return a 404 in the shape of the API's errors."""
    detail = "There is no such address; /api/docs/ lists those that there are."
    if not request.path.endswith("/"):
        detail = "There is no such address: they all end with a slash."
    drain(request)
    return errors.error_response("not_found", detail, status=404)


schema_urlpatterns = [
    path("schema/", schema, name="api-schema"),
    path("docs/", schema_page, name="api-docs"),
]
# Must be the last pattern.
nowhere_urlpatterns = [re_path(r"^", nowhere, name="api-nowhere")]
