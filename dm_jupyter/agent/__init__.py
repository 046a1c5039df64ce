"""The loop and what it needs: models to sample, notebooks to run cells in, data to look at."""
