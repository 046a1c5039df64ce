"""Questions of our own: tables with realistic dirt, questions about them, and computed answers."""
