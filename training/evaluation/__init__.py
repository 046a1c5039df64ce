"""Runs of a suite through the product's own loop: their records, settings and figures."""
