"""What happened to the data while a cell ran: facts that the kernel records and sends out."""
