"""Dynamic resource allocation: NVIDIA's DRA driver and what runs beside it."""
