"""Files of NVIDIA's programs that stand as text in a policy, read as those programs read them."""
