"""Why a whole model is faster here than there: two captures in, an explanation out.

The files of this folder are pure: they reckon with what was measured, and import neither torch nor anything that
measures. `capturing` runs a model and leaves a capture.
"""
