"""The page of evaluation runs: one file of HTML that opens from a disk, without a network."""
