"""A model as judge: verdicts that no rule can give, and the judge's agreement with the rules."""
