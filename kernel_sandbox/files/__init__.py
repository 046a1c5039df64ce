"""The files of a kernel: its working folder, what it may keep and what is collected."""
