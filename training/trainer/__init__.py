"""The trainer: rows of tokens, losses, the loop, checkpoints, and adapters for llama.cpp.

Besides the command `training.train`, this is the only package that imports torch, transformers,
peft, accelerate and gguf.
"""
