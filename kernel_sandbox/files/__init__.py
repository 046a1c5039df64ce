"""The files of a kernel: its working folder, what it may keep, what is taken out."""
