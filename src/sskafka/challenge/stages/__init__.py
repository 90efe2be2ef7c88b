"""The stages of the challenge, one file an API."""
