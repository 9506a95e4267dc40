"""What the tests of the pages of forgetting share."""

from __future__ import annotations

from typing import Any

NOBODY = "09326fd5-9f83-4b58-91f1-e39cbacc345c"
FACT = "The gate of the yard opens with the number of the old tram"
OTHER = "Liora gets a discount of eleven percent on garden chairs"
RUNS = "/admin/sessions_app/forgetrun/"
RECEIPTS = "/admin/sessions_app/forgetreceipt/"
SEARCH = f"{RUNS}search/"


def text(answer: Any) -> str:
    return str(answer.getvalue().decode())
