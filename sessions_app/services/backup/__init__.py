"""The whole database in one verified archive, and back."""
