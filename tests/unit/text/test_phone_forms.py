"""The forms of a number that are one WhatsApp account."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from memoryproject.foundation.text.phone_numbers import phone_forms

FORMS = [
    pytest.param("5511987654321 551187654321", id="Brazil, São Paulo"),
    pytest.param("5551998765432 555198765432", id="Brazil, where 9 came later"),
    pytest.param("551133334444", id="Brazil, a landline"),
    pytest.param("5511933334444", id="Brazil, a mobile number that was never shorter"),
    pytest.param("5215512345678 525512345678", id="Mexico"),
    pytest.param("5491155551234 541155551234 54111555551234", id="Argentina, Buenos Aires"),
    pytest.param("5492901422345 542901422345 54290115422345", id="Argentina, a long area code"),
    pytest.param("22507123456 2250707123456", id="Ivory Coast"),
    pytest.param("2250712345678", id="Ivory Coast, a number of the new plan"),
    pytest.param("2252720123456", id="Ivory Coast, a landline"),
    pytest.param("22961234567 2290161234567", id="Benin"),
    pytest.param("15550100123", id="United States"),
    pytest.param("972501234567", id="Israel"),
    pytest.param("", id="none"),
]


@pytest.mark.parametrize("numbers", FORMS)
def test_each_form_is_found_from_each(numbers: str) -> None:
    same = numbers.split() or [""]
    for number in same:
        assert sorted(phone_forms(number)) == sorted(same)
        assert phone_forms(number)[0] == number


@given(st.from_regex(r"\A(5[245]9?|225|229)?[0-9]{4,13}\Z") | st.text(max_size=20))
def test_forms_of_a_number_are_a_closed_set(number: str) -> None:
    forms = phone_forms(number)
    assert all(set(phone_forms(form)) == set(forms) for form in forms)
