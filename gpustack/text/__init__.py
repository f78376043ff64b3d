"""Text: YAML with the place of every value, written so that every reader agrees, and files of anybody's."""
