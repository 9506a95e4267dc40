"""ETags: 304 where nothing changed, 412 where somebody else was first."""

from __future__ import annotations

import pytest
from django.test import RequestFactory
from rest_framework.request import Request

from memoryproject.foundation.rest_kit.errors import PreconditionFailed
from memoryproject.foundation.rest_kit.views import etag_of, is_known, require_match

ETAG = etag_of("a memory", 3)


def request(**headers: str) -> Request:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Request(RequestFactory().get("/", headers=named))


def test_each_version_has_its_own_etag() -> None:
    assert etag_of("a memory", 3) == ETAG
    assert etag_of("a memory", 4) != ETAG
    assert etag_of("ab", "c") != etag_of("a", "bc")
    assert ETAG.startswith('"')


@pytest.mark.parametrize("header", [ETAG, f"W/{ETAG}", f'"other", {ETAG}', "*"])
def test_who_has_this_version_is_told_so(header: str) -> None:
    assert is_known(request(If_None_Match=header), ETAG)
    assert not is_known(request(If_None_Match='"other"'), ETAG)
    assert not is_known(request(), ETAG)


@pytest.mark.parametrize("header", [ETAG, f'"other", {ETAG}', "*"])
def test_who_has_seen_this_version_may_edit_it(header: str) -> None:
    require_match(request(If_Match=header), ETAG)
    require_match(request(), ETAG)


@pytest.mark.parametrize("header", ['"other"', f"W/{ETAG}", "nonsense", ""])
def test_who_has_seen_another_version_may_not(header: str) -> None:
    with pytest.raises(PreconditionFailed):
        require_match(request(If_Match=header), ETAG)
