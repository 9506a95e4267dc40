"""Find the receipts of a person by their number, which no receipt holds: only a keyed hash."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from django.db.models import Q, QuerySet

from sessions_app.conversations.facade import with_address
from sessions_app.forgetting.write_receipt import person_key, receipts_of
from sessions_app.models import Chat, ForgetReceipt

# The country codes of these people's numbers are tried for a number written without one.
NEWEST = 500
MAX_COUNTRY_CODE = 3
MIN_DIGITS = 6
MAX_CHATS = 50


def receipts_found(
    rows: QuerySet[ForgetReceipt], term: str, *, home_numbers: Iterable[str]
) -> QuerySet[ForgetReceipt]:
    """Return the receipts of a person's number or address, or those of a request number.

    ``home_numbers``: numbers of the business's country, such as the owner's.
    """
    of_request = Q(request_number=term)
    digits = _digits(term)
    if not digits:
        return rows.filter(of_request) | receipts_of(rows, term)
    keys = [person_key(f"{number}@c.us") for number in _whole_numbers(digits, home_numbers)]
    # Who wasn't erased is found by their chat, by any part of their number.
    chats = (
        Chat.objects.filter(with_address(term)).order_by("-updated_at").values_list("pk", flat=True)
    )
    of_person = Q(person_keys__overlap=keys) | Q(chat_id__in=list(chats[:MAX_CHATS]))
    return rows.filter(of_request | of_person)


def _digits(term: str) -> str:
    """Return the digits of a number as people write it, "" if the text is none."""
    if "@" in term or any(map(str.isalpha, term)):
        return ""
    digits = "".join(filter(str.isdigit, term.replace("(0)", "")))
    return digits if len(digits) >= MIN_DIGITS else ""


def _whole_numbers(digits: str, home_numbers: Iterable[str]) -> Collection[str]:
    """Return the international numbers that the digits may mean."""
    if digits.startswith("00"):
        return {digits[2:]}
    if not digits.startswith("0"):
        return {digits}
    local = digits[1:]
    people = Chat.objects.exclude(client_phone="").order_by("-updated_at")
    known = people.values_list("client_phone", flat=True)[:NEWEST]
    whole = [*known, *(number.partition("@")[0] for number in home_numbers)]
    codes = {number[: -len(local)] for number in whole if number.isdigit()}
    return {code + local for code in codes if 1 <= len(code) <= MAX_COUNTRY_CODE} | {digits}
