"""All help for a model: advice, critique, grounding. `core.assistance` says which rules are on."""
