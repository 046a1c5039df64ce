"""Runners of cells for the layers above: sessions, workers, snapshots and pools."""
