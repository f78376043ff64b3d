"""What the language says of itself: schema, reference, and who wrote a value."""
