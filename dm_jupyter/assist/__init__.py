"""All help for a model: advice, critique, grounding. What is on is `core.assistance`."""
