"""The prompt shapes that others published, beside ours: same loop, same model, same questions."""
