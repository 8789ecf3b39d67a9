"""What others have written, called as they ship it: their stopwatches, their rules, and witnesses of the truth."""
