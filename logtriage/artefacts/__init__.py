"""What a job leaves besides its logs: flight recorder dumps, stack dumps, error files."""
