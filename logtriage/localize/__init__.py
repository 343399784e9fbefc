"""Which candidate came first, what explains what, which rank or host differs from its peers."""
