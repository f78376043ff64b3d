"""Rules about Argo CD and Flux."""
