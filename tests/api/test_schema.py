"""The schema, and the page that shows it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from importlib import import_module
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.conf import settings
from django.contrib.staticfiles import finders
from django.core.management import call_command
from django.test import Client
from django_filters import FilterSet
from jsonschema import Draft202012Validator
from rest_framework.serializers import BaseSerializer

from memoryproject.foundation.rest_kit import fields
from memoryproject.foundation.tables import read_table
from tests.api.routes import SCOPE_OF
from tests.api.test_scopes import ROUTES

pytestmark = pytest.mark.django_db


@pytest.fixture(scope="module")
def schema() -> Any:
    out = StringIO()
    form = ("--format", "openapi-json")
    call_command("spectacular", "--validate", "--fail-on-warn", *form, stdout=out)
    return json.loads(out.getvalue())


def operations(schema: Any) -> list[tuple[str, str, Any]]:
    return [
        (path, method, operation)
        for path, methods in schema["paths"].items()
        for method, operation in methods.items()
    ]


def test_the_schema_is_valid_and_has_every_operation(schema: Any) -> None:
    expected = {
        (re.sub(r"<\w+:(\w+)>", r"{\1}", ROUTES[name][0]), method.lower())
        for name, methods in SCOPE_OF.items()
        for method in methods
    }
    assert {(path, method) for path, method, _ in operations(schema)} == expected


def test_every_operation_says_what_it_does_and_has_a_name(schema: Any) -> None:
    names = [operation["operationId"] for *_, operation in operations(schema)]
    assert len(set(names)) == len(names)
    for path, method, operation in operations(schema):
        where = f"{method} {path}"
        assert operation.get("summary"), where
        assert operation.get("description"), where
        # What programs make of a name reads as it is called, not as HTTP does.
        ending = operation["operationId"].split("_")[-1]
        assert ending not in {"create", "retrieve", "destroy", "update", "partial"}, where


@pytest.mark.parametrize("table", ["operations.yaml", "examples.yaml"])
def test_tables_of_operations_name_only_those_that_are_there(schema: Any, table: str) -> None:
    path = Path(settings.BASE_DIR) / "memoryproject" / "foundation" / "rest_kit" / table
    written = yaml.safe_load(path.read_text(encoding="utf-8")).keys() - {"values"}
    assert len(written) > 50
    assert written - {operation["operationId"] for *_, operation in operations(schema)} == set()


def subclasses(of: Any) -> Iterator[Any]:
    for each in of.__subclasses__():
        yield each
        yield from subclasses(each)


def test_the_table_of_fields_names_only_those_that_are_there(schema: Any) -> None:
    import_module("sessions_app.mcp.arguments")
    serializers = {
        each.__name__: each._declared_fields
        for each in subclasses(BaseSerializer)
        if hasattr(each, "_declared_fields")
    }
    filters = {each.__name__: each.base_filters for each in subclasses(FilterSet)}
    there = {**serializers, **filters}
    written = read_table(fields.__file__, "fields.yaml")
    assert len(written) > 50
    rows = {(owner, name) for owner, names in written.items() for name in names}
    assert rows - {(owner, name) for owner in there for name in there[owner]} == set()


def contents(schema: Any) -> Iterator[tuple[str, Any]]:
    """Every body and every answer that has one, in each form, with where it stands."""
    for path, method, operation in operations(schema):
        said = {"body": operation.get("requestBody", {}), **operation["responses"]}
        for what, each in said.items():
            for form, content in each.get("content", {}).items():
                yield f"{method} {path} {what} {form}", content


def test_every_body_and_every_answer_has_an_example(schema: Any) -> None:
    for where, content in contents(schema):
        assert content.get("examples"), where


def test_every_example_is_what_the_schema_says(schema: Any) -> None:
    components = as_json_schema(parts(schema))
    for where, content in contents(schema):
        if "event-stream" in where:  # whose schema is of one event
            continue
        wanted = {**as_json_schema(content["schema"]), "components": components}
        for name, example in content["examples"].items():
            problems = list(Draft202012Validator(wanted).iter_errors(example["value"]))
            assert not problems, f"{where} {name}: {problems[0].message}"


def parts(schema: Any) -> Any:
    """The components, of which answers have no other fields than they tell of."""
    return {
        "schemas": {
            name: {"additionalProperties": False, **part} if "properties" in part else part
            for name, part in schema["components"]["schemas"].items()
        }
    }


def as_json_schema(part: Any) -> Any:
    """OpenAPI's nullable, as JSON Schema has it."""
    if isinstance(part, list):
        return [as_json_schema(each) for each in part]
    if not isinstance(part, dict):
        return part
    made = {name: as_json_schema(each) for name, each in part.items()}
    if made.pop("nullable", None) is True:
        return {"anyOf": [made, {"type": "null"}]}
    return made


ALWAYS = {"400", "401", "403", "404", "406", "429", "503", "507"}
WITH_BODY = {"411", "413", "415"}
WITH_KEY = {"409", "422"}


def test_every_status_that_may_come_is_told(schema: Any) -> None:
    for path, method, operation in operations(schema):
        told = set(operation["responses"])
        wanted = ALWAYS | (WITH_BODY if method in ("post", "put", "patch") else set())
        if "Idempotency-Key" in names_of(operation):
            wanted |= WITH_KEY
        if {"If-Match", "If-None-Match"} & set(names_of(operation)):
            wanted.add("304" if method == "get" else "412")
        if method == "delete" or (method == "patch" and "memor" in path):
            wanted.add("409")
        assert wanted <= told, (method, path, wanted - told)
        for status in told - {"200", "201"}:
            assert operation["responses"][status]["description"], (method, path, status)


def names_of(operation: Any) -> list[str]:
    return [parameter["name"] for parameter in operation.get("parameters", [])]


def test_headers_of_answers_are_told(schema: Any) -> None:
    for path, method, operation in operations(schema):
        answers = operation["responses"]
        for status in ("429", "503"):
            assert answers[status]["headers"]["Retry-After"]["required"], (method, path)
        assert "WWW-Authenticate" in answers["401"]["headers"], (method, path)
        for status in ("400", "429"):
            assert "RateLimit-Remaining" in answers[status]["headers"], (method, path, status)
        good = [answer for status, answer in answers.items() if status in ("200", "201", "304")]
        assert all("RateLimit-Remaining" in each["headers"] for each in good), (method, path)
        if "Idempotency-Key" in names_of(operation):
            told = [set(each["headers"]) for each in good]
            assert all("Idempotent-Replayed" in each for each in told), (method, path)
            assert "Retry-After" in answers["409"]["headers"], (method, path)
        # What is deleted has no version any more.
        conditional = {"If-Match", "If-None-Match"} & set(names_of(operation))
        if conditional and method != "delete":
            assert all(each["headers"]["ETag"]["required"] for each in good), (method, path)


def test_every_tag_is_described(schema: Any) -> None:
    described = {tag["name"] for tag in schema["tags"] if tag["description"]}
    assert {tag for _, _, operation in operations(schema) for tag in operation["tags"]} == described


def test_every_parameter_says_what_it_means(schema: Any) -> None:
    for path, method, operation in operations(schema):
        for parameter in operation.get("parameters", []):
            assert parameter.get("description"), (method, path, parameter["name"])


def is_described(part: Any, schemas: Any) -> bool:
    """Whether the part says what it means, itself or by the component that it stands for."""
    if part.get("description"):
        return True
    named = [
        each["$ref"].split("/")[-1] for each in (part, *part.get("allOf", ())) if "$ref" in each
    ]
    return any(schemas[name].get("description") for name in named)


def test_every_property_says_what_it_means(schema: Any) -> None:
    schemas = schema["components"]["schemas"]
    silent = [
        f"{name}.{field}"
        for name, component in schemas.items()
        for field, part in component.get("properties", {}).items()
        if not is_described(part, schemas)
    ]
    assert silent == []


def test_lists_are_pages(schema: Any) -> None:
    for path, method, operation in operations(schema):
        if "cursor" in names_of(operation):
            content = operation["responses"]["200"]["content"]["application/json"]
            name = content["schema"]["$ref"].split("/")[-1]
            fields = schema["components"]["schemas"][name]["properties"]
            ways = {"next", "previous", "next_cursor", "previous_cursor"}
            assert set(fields) == {"results", *ways}, (method, path)


def test_no_type_has_the_name_of_one_that_every_program_has(schema: Any) -> None:
    """Generated clients name their types after the components, and some have globals."""
    general = {"Answer", "Document", "Error", "Event", "File", "Import", "Report", "Request"}
    assert not general & set(schema["components"]["schemas"])
    for path, method, operation in operations(schema):
        for parameter in operation.get("parameters", []):
            # A title would name the type of its values.
            assert "title" not in parameter["schema"], (method, path, parameter["name"])


def test_what_refuses_unknown_fields_says_so(schema: Any) -> None:
    for name, part in schema["components"]["schemas"].items():
        if name.endswith("Request"):
            assert part["additionalProperties"] is False, name


def test_lists_tell_of_their_filter_their_order_and_their_fields(schema: Any) -> None:
    for name in ("memories", "sessions", "chats", "sessions/{session_id}/messages"):
        parameters = schema["paths"][f"/api/v1/{name}/"]["get"]["parameters"]
        told = {each["name"]: each for each in parameters}
        assert {"where", "fields", "ordering"} <= set(told), name
        assert all(order in told["fields"]["description"] for order in SORTED_BY[name])
        assert set(told["ordering"]["schema"]["enum"]) == {
            way + order for order in SORTED_BY[name] for way in ("", "-")
        }


SORTED_BY = {
    "memories": ["created_at", "updated_at"],
    "sessions": ["created_at", "last_active"],
    "chats": ["created_at"],
    "sessions/{session_id}/messages": ["order_num"],
}


def test_the_fields_of_an_answer_are_each_named_once(schema: Any) -> None:
    for path, method, operation in operations(schema):
        for parameter in operation.get("parameters", ()):
            if parameter["name"] == "fields":
                listed = parameter["description"].partition("There are: ")[2].rstrip(".")
                assert len(listed.split(", ")) == len(set(listed.split(", "))), (path, method)
                assert "." not in listed, (path, method)


def test_every_creating_post_tells_of_its_key(schema: Any) -> None:
    for path, method, operation in operations(schema):
        names = [parameter["name"] for parameter in operation.get("parameters", [])]
        if method == "post" and not path.endswith("/context/"):
            reads = any(word in path for word in ("recall", "validate", "search"))
            assert "Idempotency-Key" in names or reads, path


def test_the_page_needs_nothing_from_elsewhere(client: Client) -> None:
    page = client.get("/api/docs/")
    assert page.status_code == 200
    text = page.content.decode()
    addresses = re.findall(r"""(?:src|href)=["']([^"']+)["']""", text)
    assert any(address.startswith("/api/schema/") for address in addresses)
    for address in addresses:
        if address == "/api/docs/?script=":  # the page's own script, which the policy wants apart
            assert client.get(address)["Content-Type"].startswith("application/javascript")
            continue
        if address.startswith("/api/schema/"):  # for who reads without scripts
            served = yaml.load(client.get(address).content, yaml.CSafeLoader)
            assert served["openapi"].startswith("3.")
            continue
        assert address.startswith("/static/"), address
        assert finders.find(address.removeprefix("/static/").split("?")[0]), address
    assert "://" not in re.sub(r"https?://testserver", "", text)


@pytest.mark.parametrize("method", ["OPTIONS", "POST", "DELETE"])
def test_the_schemas_page_is_only_read(client: Client, method: str) -> None:
    assert client.generic(method, "/api/docs/").status_code == 405
