"""Records of a run, one per try: written, read and salvaged."""
