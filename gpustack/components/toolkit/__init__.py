"""The container toolkit, and the RuntimeClasses that lead to it."""
