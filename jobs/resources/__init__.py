"""Resources, and what finds them by what they say."""
