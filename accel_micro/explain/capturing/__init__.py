"""Runs a model and leaves a capture. A process (`process.py`) is a fresh interpreter; `taking.py` starts them."""
