"""What a run leaves of each try: records, read again, salvaged."""
