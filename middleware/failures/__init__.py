"""What an error means and what happens next: kinds, classification, retries, time limits, shutdown."""
