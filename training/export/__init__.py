"""Export of runs to another dialect, as conversations, and replays of exported runs."""
