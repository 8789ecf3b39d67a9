"""Samples to estimates, pure: numpy and scipy only."""
