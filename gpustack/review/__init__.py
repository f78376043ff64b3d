"""What a change means: between two releases (releases.py), and between two renders."""
