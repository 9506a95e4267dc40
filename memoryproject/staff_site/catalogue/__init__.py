"""Texts of packages that staff see and for which the packages have no Hebrew translation."""
