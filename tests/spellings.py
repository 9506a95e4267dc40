"""Ids of chats in their stored form, and all other ways to write them, for hypothesis."""

from __future__ import annotations

from hypothesis import strategies as st

_phones = st.from_regex("[1-9][0-9]{4,14}", fullmatch=True).map(lambda phone: f"{phone}@c.us")
_groups = st.from_regex("[A-Za-z0-9][A-Za-z0-9_-]{0,20}", fullmatch=True).map(
    lambda name: f"{name}@g.us"
)
_bsuids = st.from_regex(r"[A-Z]{2}\.(ENT\.)?[A-Za-z0-9]{1,20}", fullmatch=True).map(
    lambda name: f"{name}@bsuid"
)
_lids = st.from_regex("[0-9]{1,20}", fullmatch=True).map(lambda name: f"{name}@lid")
_own = st.from_regex("[A-Za-z0-9][A-Za-z0-9._-]{0,20}", fullmatch=True).map(
    lambda name: f"{name}@external"
)

stored_ids = st.one_of(_phones, _groups, _bsuids, _lids, _own)


@st.composite
def spellings(draw: st.DrawFn, stored: str) -> str:
    """Return one of the ways to write this id."""
    name, _, domain = stored.partition("@")
    device = draw(st.sampled_from(["", ":0", ":12"])) if domain in ("c.us", "lid") else ""
    if domain == "c.us":
        name = draw(st.sampled_from(["", "+"])) + name
        domain = draw(st.sampled_from(["c.us", "s.whatsapp.net", ""]))
    if domain == "bsuid":
        country, _, rest = name.partition(".")
        name = f"{draw(_cased(country))}.{rest}"
        if draw(st.booleans()):
            return name
    return f"{name}{device}@{draw(_cased(domain))}" if domain else name


@st.composite
def _cased(draw: st.DrawFn, text: str) -> str:
    return "".join(draw(st.sampled_from([one.lower(), one.upper()])) for one in text)
