"""Published prompt shapes compared with ours: same loop, same model, same questions."""
