"""The page about evaluation runs: one HTML file that opens from disk, without a network."""
