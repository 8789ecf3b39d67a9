"""What users of other harnesses reported in public, tried here: what such a harness reads, and what ours does.

Each report has one function or more, in the file of its subject, each on a device of its own. `running` runs them in
a process that may die or hang without taking the others along; `rendering` shows what they found.
"""
