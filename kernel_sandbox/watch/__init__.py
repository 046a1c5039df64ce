"""What a kernel uses: memory, time, processes and open files, and what ends it."""
