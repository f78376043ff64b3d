"""The namespace, and manifests that the policy brings along."""
