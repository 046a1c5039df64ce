"""All help for a model: repairs, hints, advice, critique. What is on is `core.assistance`."""
