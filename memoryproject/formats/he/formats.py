"""Dates as the Hebrew admin shows them: alike on every page, with a 24-hour clock."""

DATE_FORMAT = "j בF Y"
TIME_FORMAT = "H:i"
DATETIME_FORMAT = "j בF Y, H:i"
SHORT_DATE_FORMAT = "j בF Y"
SHORT_DATETIME_FORMAT = "j בF Y, H:i"
NUMBER_GROUPING = 3
