"""The pages of contacts, for the addresses of the admin site."""

from memoryproject.foundation.admin_kit.staff_pages import OwnPage
from sessions_app.contacts.contact_pages import contact_page, contacts_page, edit_page, export_page
from sessions_app.contacts.merge_pages import merge_find_page, merge_page, split_page, undo_page

READ, FORM = "GET HEAD", "GET HEAD POST"
ONE = "contacts/<uuid:chat_id>/"
CONTACT_PAGES = {
    "contacts": OwnPage("contacts/", contacts_page, READ),
    "contact": OwnPage(ONE, contact_page, READ),
    "contact_edit": OwnPage(f"{ONE}edit/", edit_page, FORM),
    "contact_export": OwnPage(f"{ONE}export/", export_page, "GET"),
    "contact_merge_find": OwnPage(f"{ONE}merge/", merge_find_page, READ),
    "contact_merge": OwnPage(f"{ONE}merge/<uuid:other_id>/", merge_page, FORM),
    "contact_split": OwnPage(f"{ONE}split/", split_page, FORM),
    "contact_merge_undo": OwnPage("contacts/merges/<uuid:merge_id>/undo/", undo_page, FORM),
}
