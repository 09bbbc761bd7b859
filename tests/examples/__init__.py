"""Applications that use the kit, small enough to copy from; tests run them."""
