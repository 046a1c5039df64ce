"""What runs cells for the layers above: sessions, workers, snapshots, pools."""
