"""From files to effective specs: frames, layers, defaults, who wrote what, and what is wrong where."""
