"""The words of the language: one pydantic module per section, and the types of texts and numbers in them."""
