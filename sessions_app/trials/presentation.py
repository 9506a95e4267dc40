"""Functions of trials for pages of other packages."""

from sessions_app.trials.admin.views import trial_paths

__all__ = ["trial_paths"]
