"""Questions: templates, the values that fill them, their words, and what makes one ambiguous."""
