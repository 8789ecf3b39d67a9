"""Torch builds: what they are called, and which one is installed."""
