"""What a run found, in sentences: for the first screen of its page and for the terminal."""
