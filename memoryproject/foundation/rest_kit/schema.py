"""The schema's description of every operation."""

import threading
from collections.abc import Sequence
from functools import cache
from typing import Any, Literal

from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.openapi import AutoSchema
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.serializers import Serializer

from memoryproject.foundation.rest_kit import throttles, views, where
from memoryproject.foundation.rest_kit.fields import meaning_of
from memoryproject.foundation.rest_kit.idempotency import MAX_KEY_LENGTH, PRINTABLE, REPLAYED
from memoryproject.foundation.rest_kit.operations import Refusal, example, refusals
from memoryproject.foundation.rest_kit.serializers import ErrorResponseSerializer, Strict
from memoryproject.foundation.tables import read_table

KEY_PARAMETER = OpenApiParameter(
    "Idempotency-Key",
    {"type": "string", "minLength": 1, "maxLength": MAX_KEY_LENGTH, "pattern": PRINTABLE},
    OpenApiParameter.HEADER,
    description="The same key and body give the same answer and one effect, for 24 hours.",
)
REPLAYED_HEADER = OpenApiParameter(
    REPLAYED,
    {"type": "string", "enum": ["true"]},
    OpenApiParameter.HEADER,
    description="This is the answer of an earlier call with the same Idempotency-Key.",
    response=[200, 201],
)

RATE_HEADERS = [
    OpenApiParameter(name, int, OpenApiParameter.HEADER, description=text, response=True)
    for name, text in throttles.HEADERS.items()
]


class Schema(AutoSchema):
    """Add the parts that all operations share: the errors, and the headers of creating calls."""

    def get_override_parameters(self) -> list[Any]:
        query = getattr(self.view, "query_serializer_class", None)
        parameters = [query] if query is not None and self.method == "GET" else []
        parameters += [*self._choosing(), *RATE_HEADERS]
        return [*parameters, *([KEY_PARAMETER, REPLAYED_HEADER] if self._takes_key() else [])]

    def _choosing(self) -> list[OpenApiParameter]:
        """Return the parameters by which a GET chooses rows, their order, and their fields."""
        if self.method != "GET":
            return []
        text = {"type": "string", "minLength": 1}
        found = []
        if names := ", ".join(getattr(self.view, "where_fields", ())):
            meaning = f"A condition as JSON, such as `{where.EXAMPLE}`. Fields: {names}."
            found.append(OpenApiParameter("where", text, description=meaning))
        if names := ", ".join(getattr(self.view, "serializer_class", Serializer)._declared_fields):
            meaning = "Only these fields of each object, with commas between them. There are: "
            found.append(OpenApiParameter("fields", text, description=f"{meaning}{names}."))
        if orders := views.orders_of(getattr(self.view, "sortable", ())):
            ordering, meaning = {**text, "enum": orders}, "The order; with `-`: falling."
            found.append(OpenApiParameter("ordering", ordering, description=meaning))
        return found

    def _get_parameters(self) -> list[Any]:
        """Describe every parameter, and mark texts in a query as not empty: views refuse those."""
        filters = getattr(self.view, "filterset_class", None)
        for name, each in getattr(filters, "base_filters", {}).items():
            each.extra.setdefault("help_text", meaning_of(filters, name))
        parameters: list[Any] = super()._get_parameters()
        for each in parameters:
            schema = each["schema"]
            # A column's label for staff, after which generated clients would name the type.
            schema.pop("title", None)
            if each["in"] == "query" and schema.get("type") == "string" and len(schema) == 1:
                each["schema"] = {"type": "string", "minLength": 1}
            if not each.get("description"):
                each["description"] = self._meaning_of(each["name"])
        return parameters

    def _meaning_of(self, name: str) -> str:
        """Return what a parameter means that the generator left without a description.

        It drops a filter's help text where the filter has a schema of its own.
        """
        filters = getattr(getattr(self.view, "filterset_class", None), "base_filters", {})
        if name in filters:
            return str(filters[name].extra.get("help_text", ""))
        if name == "format":
            return "The format of the response, in place of `Accept`."
        words = name.removesuffix("_id").replace("_", " ")
        return f"The id of the {words}." if name.endswith("_id") else ""

    def _get_request_body(self, direction: Literal["request", "response"] = "request") -> Any:
        """Mark the body as required unless the method or the view allows an empty one."""
        body = super()._get_request_body(direction)  # type: ignore[no-untyped-call]
        if body is not None and self.method != "PATCH" and getattr(self.view, "needs_body", True):
            body["required"] = True
        return body

    def _get_serializer_field_meta(self, field: Any, direction: Any) -> Any:
        meta = super()._get_serializer_field_meta(field, direction)  # type: ignore[no-untyped-call]
        if meaning := meaning_of(type(field.parent), field.field_name):
            meta["description"] = meaning
        return meta

    def _map_basic_serializer(self, serializer: Any, direction: Any) -> Any:
        """Mark strict objects as closed: they refuse unknown fields."""
        mapped = super()._map_basic_serializer(serializer, direction)  # type: ignore[no-untyped-call]
        return (
            {**mapped, "additionalProperties": False} if isinstance(serializer, Strict) else mapped
        )

    def _takes_key(self) -> bool:
        handler = getattr(self.view, self.method.lower(), None)
        return bool(getattr(handler, "takes_idempotency_key", False))

    def _get_response_bodies(self, direction: Literal["request", "response"] = "response") -> Any:
        bodies = super()._get_response_bodies(direction)
        own = getattr(self.view, "answers", {}).get(self.method, ())
        for code, refused in refusals(self.method, takes_key=self._takes_key(), own=own):
            bodies[code] = self._refused(code, refused)
        return bodies

    def _refused(self, code: str, refused: Sequence[Refusal]) -> dict[str, Any]:
        """Return the shape of errors, with an example of each meaning."""
        found = self._get_response_for_code(  # type: ignore[no-untyped-call]
            ErrorResponseSerializer, code, ["application/json"]
        )
        found["description"] = " ".join(each.meaning for each in refused)
        examples = {each.code: {"value": each.example()} for each in refused}
        found["content"]["application/json"]["examples"] = examples
        headers = {name: text for each in refused for name, text in each.headers().items()}
        return {**found, "headers": {**found["headers"], **headers}}


# Two requests may make the schema at the same time, and a second annotation would add to the first.
_annotating = threading.Lock()


@cache
def _of_operations(name: str) -> dict[str, Any]:
    """Return what a file holds of each operation: ``examples.yaml`` or ``operations.yaml``."""
    found: dict[str, Any] = read_table(__file__, name)
    return found


class Generator(SchemaGenerator):
    """Apply what ``described`` recorded of the operations, and name the server that was asked."""

    def get_schema(self, request: Any = None, public: bool = False) -> Any:
        schema = super().get_schema(request=request, public=public)  # type: ignore[no-untyped-call]
        # Where BASE_URL is set, the settings name it.
        if request is not None and "servers" not in schema:
            schema["servers"] = [{"url": request.build_absolute_uri("/").rstrip("/")}]
        return schema

    def create_view(self, callback: Any, method: str, request: Any = None) -> Any:
        handler = getattr(callback.cls, method.lower())
        with _annotating:
            options = vars(handler).pop("schema_options", None)
            if options is not None:
                operation = options["operation_id"]
                texts = _of_operations("operations.yaml").get(operation, {})
                rows = _of_operations("examples.yaml").get(operation, ())
                extend_schema(**options, **texts, examples=[example(row) for row in rows])(handler)
        return super().create_view(callback, method, request)  # type: ignore[no-untyped-call]


class TokenScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    """Describe tokens in the schema."""

    target_class = "memoryproject.foundation.rest_kit.authentication.TokenAuthentication"
    name = "token"

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:
        return {
            "type": "http",
            "scheme": "bearer",
            "description": "A token by `manage.py create_api_token NAME`.",
        }


class StaffScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    """Describe staff sessions in the schema."""

    target_class = "memoryproject.foundation.rest_kit.authentication.StaffAuthentication"
    name = "staff"

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:
        return {
            "type": "apiKey",
            "in": "cookie",
            "name": "sessionid",
            "description": "The admin's session; what writes needs the CSRF token.",
        }
