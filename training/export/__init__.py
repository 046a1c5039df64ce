"""Runs in another dialect than they were made in: as conversations, and run again."""
