"""Public face of trials: what other packages may use."""

from sessions_app.trials.run_trial import (
    MAX_TRIALS,
    TrialWanted,
    trial_run,
    trial_start,
    trials_abandoned,
)
