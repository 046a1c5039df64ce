"""What happened to the data while a cell ran: facts that the kernel notes, and their way out."""
