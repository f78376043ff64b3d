"""What a pool's nodes are made with: objects that bring them up, and texts for whoever makes them."""
