"""Questions: templates, the values that fill them, their wording, and checks for ambiguity."""
