"""Other targets as rows of differences from SM86."""
