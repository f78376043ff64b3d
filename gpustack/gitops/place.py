"""Where the engines' objects are below dist/. Imports nothing: whoever looks for a file asks here."""

FOLDER = ".gitops"
"""No cluster can be called so, and no engine syncs it along with a cluster."""
