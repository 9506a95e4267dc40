"""Texts of packages that staff read and that the packages have no Hebrew for."""
