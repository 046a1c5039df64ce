"""Descriptions of figures in words."""
