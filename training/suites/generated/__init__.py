"""Generated questions: tables with realistic dirt, questions about them, and computed answers."""
