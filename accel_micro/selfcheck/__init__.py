"""Is what we say of ourselves so? The suite against its peers on this machine, and what comes out of it.

Figures, tables and plans here are pure. `peers` runs what others have written: stopwatches and rules of comparison.
"""
