"""A model as judge: verdicts where no rule can give one, and how far it agrees with the rules."""
