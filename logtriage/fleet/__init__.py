"""Many jobs: what ended and is not triaged yet, the workers, and what the verdicts say together."""
