"""Questions about a job in plain words, answered from its verdict and with the lines that show it."""
