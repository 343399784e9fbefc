"""Rules as data: loading, linting, proving and matching. Knows nothing of ranks or time order."""
